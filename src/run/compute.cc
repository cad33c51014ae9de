// tested in tests/every_position_test.cc
#include "run/compute.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "sample/rows.h"

namespace penstock {
namespace {

/// All rows as one sample: each field with the rows as first dimension.
Sample whole_sample(const BlockView& block) {
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < block.columns.size(); ++i) {
    const FieldSpec& field = block.spec->fields[i];
    Shape shape{static_cast<std::int64_t>(block.rows)};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    leaves.push_back(Tensor::view(field.dtype, std::move(shape),
                                  {block.columns[i].data, block.rows * block.columns[i].row_bytes},
                                  nullptr));
  }
  return Sample::assemble(block.spec->structure, std::move(leaves));
}

Result<void> take_apart(const Sample& made, const BlockView& out) {
  ElementSpec wanted = *out.spec;
  for (FieldSpec& field : wanted.fields)
    field.shape.insert(field.shape.begin(), static_cast<std::int64_t>(out.rows));
  if (const auto wrong = wanted.difference(made))
    return Failure{*wrong,
                   {},
                   "a function of whole batches keeps the rows of the batch as its "
                   "first dimension; declare .spec when it changes a row",
                   nullptr,
                   0};
  for (std::size_t i = 0; i < out.columns.size(); ++i)
    if (const auto raw = made.leaves()[i].raw(); !raw.empty())
      std::memcpy(out.columns[i].data, raw.data(), raw.size());
  return {};
}

Result<void> apply(const WholeOp& step, const BlockView& in, const BlockView& out) {
  Result<void> done;
  if (step.op->row_wise() || !step.op->takes_samples()) {
    done = step.op->run(in, out, {});
  } else {
    auto made = step.op->run_sample(whole_sample(in), {}, 0);
    done = made ? take_apart(*made, out) : Result<void>(std::move(made.failure()));
  }
  if (!done) done.failure().where.op = step.title;
  return done;
}

std::uint64_t* consecutive(std::uint64_t first, std::size_t count, Scratch& scratch) {
  std::uint64_t* const positions = scratch.array<std::uint64_t>(count);
  for (std::size_t i = 0; i < count; ++i) positions[i] = first + i;
  return positions;
}

}  // namespace

bool is_whole(const Program& program, const Place& place) {
  return !program.chains[place.leaf].whole.empty();
}

Result<void> compute_rows(const Program& program, const Place& place, std::uint64_t first_row,
                          const BlockView& out, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  BlockView rows = out;
  if (program.random && rows.identity.occurrence == nullptr)
    rows.identity.occurrence = scratch.array<std::uint64_t>(out.rows);
  const std::uint64_t* const positions = consecutive(place.first + first_row, out.rows, scratch);
  return program.chains[place.leaf].samples->produce({place.turn, {positions, out.rows}}, rows,
                                                     scratch);
}

Result<void> compute_step(const Program& program, const Place& place,
                          std::span<const Destination> destinations, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const Chain& chain = program.chains[place.leaf];
  auto block = std::make_unique<ScratchBlock>(chain.samples->spec(), place.count, scratch);
  const std::uint64_t* const positions = consecutive(place.first, place.count, scratch);
  auto done =
      chain.samples->produce({place.turn, {positions, place.count}}, block->view(), scratch);
  for (const WholeOp& step : chain.whole) {
    if (!done) return done;
    auto next =
        std::make_unique<ScratchBlock>(step.spec, place.count, scratch, block->view().identity);
    done = apply(step, block->view(), next->view());
    block = std::move(next);
  }
  if (!done) return done;
  for (const Destination& destination : destinations)
    copy_rows(block->view(), destination.first_row, *destination.rows, 0, destination.rows->rows);
  return {};
}

}  // namespace penstock
