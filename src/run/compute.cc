// tested in tests/every_position_test.cc
#include "run/compute.h"

#include <fmt/format.h>

#include <algorithm>
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

/// Rows of the step from `first_row` on. A step that wraps comes to the end of the order once or
/// more often, and goes on at its start in another lap.
Result<void> produce(const Stage& samples, const Place& place, std::uint64_t first_row,
                     const BlockView& out, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  std::uint64_t* const positions = scratch.array<std::uint64_t>(out.rows);
  for (std::size_t done = 0; done < out.rows;) {
    Turn turn = place.turn;
    std::uint64_t first = place.first + first_row + done;
    std::size_t rows = out.rows - done;
    if (place.period > 0) {
      turn.lap += first / place.period;
      first %= place.period;
      rows = std::min<std::size_t>(rows, place.period - first);
    }
    for (std::size_t i = 0; i < rows; ++i) positions[i] = first + i;
    const Scratch::Frame lap_frame(scratch);
    const BlockView part = cut_rows(out, done, rows, scratch);
    if (auto made = samples.produce({turn, {positions, rows}}, part, scratch); !made) {
      made.failure().row += done;
      return made;
    }
    done += rows;
  }
  return {};
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
  return produce(*program.chains[place.leaf].samples, place, first_row, rows, scratch);
}

namespace {

/// The rows that did not fail, one after the other; `rows` says which they are.
std::unique_ptr<ScratchBlock> only_good(const BlockView& block, std::vector<std::size_t>& rows,
                                        Scratch& scratch) {
  for (std::size_t row = 0; row < block.rows; ++row)
    if (block.identity.failed == nullptr || block.identity.failed[row] == 0) rows.push_back(row);
  auto good = std::make_unique<ScratchBlock>(*block.spec, rows.size(), scratch);
  for (std::size_t i = 0; i < rows.size(); ++i) copy_rows(block, rows[i], good->view(), i, 1);
  return good;
}

/// The step's identity, with flags where the destinations have some.
Identity step_identity(std::size_t rows, std::span<const Destination> destinations,
                       Scratch& scratch) {
  Identity identity{scratch.array<std::uint64_t>(rows), scratch.array<std::uint64_t>(rows)};
  if (!destinations.empty() && destinations.front().rows->identity.failed != nullptr) {
    identity.failed = scratch.array<std::uint8_t>(rows);
    std::fill_n(identity.failed, rows, std::uint8_t{0});
    identity.failures = destinations.front().rows->identity.failures;
  }
  return identity;
}

}  // namespace

Result<void> compute_step(const Program& program, const Place& place,
                          std::span<const Destination> destinations, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const Chain& chain = program.chains[place.leaf];
  const Identity identity = step_identity(place.count, destinations, scratch);
  const ScratchBlock all(chain.samples->spec(), place.count, scratch, identity);
  auto done = produce(*chain.samples, place, 0, all.view(), scratch);
  if (!done) return done;
  std::vector<std::size_t> good_rows;
  auto block = only_good(all.view(), good_rows, scratch);
  for (const WholeOp& step : chain.whole) {
    auto next = std::make_unique<ScratchBlock>(step.spec, good_rows.size(), scratch,
                                               block->view().identity);
    if (done = apply(step, block->view(), next->view()); !done) return done;
    block = std::move(next);
  }
  for (const Destination& destination : destinations) {
    const BlockView& out = *destination.rows;
    if (out.identity.failed != nullptr) std::fill_n(out.identity.failed, out.rows, std::uint8_t{1});
    for (std::size_t i = 0; i < good_rows.size(); ++i) {
      const std::size_t row = good_rows[i] - destination.first_row;
      if (good_rows[i] < destination.first_row || row >= out.rows) continue;
      copy_rows(block->view(), i, out, row, 1);
      if (out.identity.failed != nullptr) out.identity.failed[row] = 0;
    }
  }
  return {};
}

}  // namespace penstock
