#include "run/compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "plan/failures.h"
#include "sample/packed_field.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// The rows of a field whose sizes differ, or may differ from batch to batch, as one tensor.
Result<Tensor> padded_tensor(const FieldSpec& field, std::span<const Tensor> rows,
                             const FieldPadding& rule) {
  std::vector<RowValue> values;
  for (const Tensor& row : rows) values.push_back({row.raw(), &row.shape()});
  auto packed = std::make_shared<PackedField>();
  if (const auto wrong = pad_rows(field, values, rule, *packed))
    return Failure{wrong->why, {}, wrong->remedy, nullptr, wrong->row};
  Shape shape = *packed->row_shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(rows.size()));
  return Tensor::view(field.dtype, std::move(shape), packed->values, packed);
}

/// All rows as one sample: each field with the rows as first dimension.
Result<Sample> whole_sample(const BlockView& block, const Padding* padding) {
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < block.columns.size(); ++i) {
    const FieldSpec& field = block.spec->fields[i];
    const Column& column = block.columns[i];
    if (!column.dense()) {
      // The results of a function of whole batches have one size, and need no rule.
      const FieldPadding* const rule = padding == nullptr ? nullptr : padding->of(field.path);
      auto padded = padded_tensor(field, {column.tensors, block.rows},
                                  rule == nullptr ? FieldPadding{} : *rule);
      if (!padded) return std::move(padded.failure());
      leaves.push_back(std::move(*padded));
      continue;
    }
    Shape shape{static_cast<std::int64_t>(block.rows)};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    leaves.push_back(Tensor::view(field.dtype, std::move(shape),
                                  {column.data, block.rows * column.row_bytes}, nullptr));
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
  for (std::size_t i = 0; i < out.columns.size(); ++i) {
    const Tensor& leaf = made.leaves()[i];
    if (out.columns[i].dense()) {
      if (!leaf.raw().empty())
        std::memcpy(out.columns[i].data, leaf.raw().data(), leaf.raw().size());
      continue;
    }
    const Shape row_shape(leaf.shape().begin() + 1, leaf.shape().end());
    const std::size_t bytes = leaf.raw().size() / std::max<std::size_t>(1, out.rows);
    for (std::size_t row = 0; row < out.rows; ++row)
      out.columns[i].tensors[row] =
          Tensor::copy(leaf.dtype(), row_shape, leaf.raw().subspan(row * bytes, bytes));
  }
  return {};
}

/// Row-wise ops skip failed rows if the policy allows; a function of the whole batch fails as a
/// whole. It receives fields as `padding` says; null: their rows have one size.
Result<void> apply(const WholeOp& step, const IdSpace& ids, std::uint64_t pass, const BlockView& in,
                   const BlockView& out, const Padding* padding, const Context& context) {
  Result<void> done;
  OpContext op_context(context);
  const trace::MeasuredCall call =
      context.enter(step.place.title, in.rows > 0 ? in.identity.sample_id[0] : 0, in.rows);
  call.made(dense_bytes(out));
  if (step.op->row_wise()) {
    return for_good_rows(out, ids, [&](std::size_t first, std::size_t rows) {
      const Scratch::Frame frame(context.scratch);
      auto part = step.op->run(cut_rows(in, first, rows, context.scratch),
                               cut_rows(out, first, rows, context.scratch), op_context);
      if (!part) part.failure().where.op = step.place.title;
      return part;
    });
  }
  if (!step.op->takes_samples()) {
    const RandomKey key{step.place.seed, step.place.ordinal, pass};
    const RowRng rng = [&](std::size_t row) {
      return key.rng(in.identity.occurrence[row], ids.key(in.identity.sample_id[row]));
    };
    if (step.op->draws_by_row()) op_context.rng = &rng;
    done = step.op->run(in, out, op_context);
  } else {
    auto whole = whole_sample(in, padding);
    if (!whole) return at_sample(std::move(whole.failure()), ids, in);
    auto made = step.op->run_sample(*whole, op_context, 0);
    done = made ? take_apart(*made, out) : Result<void>(std::move(made.failure()));
  }
  if (!done) done.failure().where.op = step.place.title;
  return done;
}

/// Computes rows of the step from `first_row` on.
Result<void> produce(const Stage& samples, const Place& place, std::uint64_t first_row,
                     const BlockView& out, const Context& context, const BlockView* pulled) {
  const Scratch::Frame frame(context.scratch);
  std::uint64_t* const positions = context.scratch.array<std::uint64_t>(out.rows);
  for (std::size_t done = 0; done < out.rows;) {
    const auto [turn, first, rows] = stretch_of(place, first_row + done, out.rows - done);
    for (std::size_t i = 0; i < rows; ++i) positions[i] = first + i;
    const Scratch::Frame lap_frame(context.scratch);
    const BlockView part = cut_rows(out, done, rows, context.scratch);
    if (auto made = samples.produce({turn, {positions, rows}, pulled}, part, context); !made) {
      made.failure().row += done;
      return made;
    }
    done += rows;
  }
  return {};
}

}  // namespace

Result<void> ask_sequence(const Program& program, const Place& place,
                          std::optional<std::uint64_t> step, SequenceBatch& batch,
                          const Context& context) {
  const LeafProgram& chain = program.chains[place.leaf];
  auto done = chain.sequence->get(
      {place.first, chain.first_id, place.turn.pass, place.turn.occurrence()}, batch, context);
  if (!done) done.failure().where.step = step;
  return done;
}

bool is_whole(const Program& program, const Place& place) {
  return !program.chains[place.leaf].whole.empty();
}

BatchForm form_of(const Program& program, const Place& place) {
  const LeafProgram& chain = program.chains[place.leaf];
  // A function of whole samples has received padded rows already.
  const bool padded = std::ranges::any_of(
      chain.whole, [](const WholeOp& step) { return step.op->takes_samples(); });
  return {is_whole(program, place), padded ? nullptr : chain.padding.get()};
}

Result<void> compute_rows(const Program& program, const Place& place, std::uint64_t first_row,
                          const BlockView& out, const Context& context, const BlockView* pulled) {
  const Scratch::Frame frame(context.scratch);
  BlockView rows = out;
  if (program.random && rows.identity.occurrence == nullptr)
    rows.identity.occurrence = context.scratch.array<std::uint64_t>(out.rows);
  return produce(*program.chains[place.leaf].samples, place, first_row, rows, context, pulled);
}

Result<void> compute_together(const Program& program, const Place& place,
                              std::span<const BlockView> outs, const Context& context) {
  const Scratch::Frame frame(context.scratch);
  const ScratchBlock all(*outs.front().spec, place.count, context.scratch);
  auto done = compute_rows(program, place, 0, all.view(), context);
  if (!done) return done;
  std::size_t row = 0;
  for (const BlockView& out : outs) {
    copy_rows(all.view(), row, out, 0, out.rows);
    row += out.rows;
  }
  return {};
}

void collect_reads(const Program& program, const Place& place, std::uint64_t first_row,
                   std::uint64_t rows, std::vector<PlannedRead>& reads, const Context& context) {
  const Scratch::Frame frame(context.scratch);
  std::uint64_t* const positions = context.scratch.array<std::uint64_t>(rows);
  for (std::uint64_t done = 0; done < rows;) {
    const auto [turn, first, count] = stretch_of(place, first_row + done, rows - done);
    for (std::size_t i = 0; i < count; ++i) positions[i] = first + i;
    program.chains[place.leaf].samples->collect_reads({turn, {positions, count}}, context, reads);
    done += count;
  }
}

namespace {

bool any_failed(const BlockView& block) {
  const std::uint8_t* const failed = block.identity.failed;
  return failed != nullptr &&
         std::any_of(failed, failed + block.rows, [](std::uint8_t flag) { return flag != 0; });
}

/// A separate identity for `rows` rows, with flags if `like` has them.
Identity new_identity(std::size_t rows, const Identity& like, const Context& context) {
  Identity identity{context.scratch.array<std::uint64_t>(rows),
                    context.scratch.array<std::uint64_t>(rows)};
  if (like.failed != nullptr) {
    identity.failed = context.scratch.array<std::uint8_t>(rows);
    std::fill_n(identity.failed, rows, std::uint8_t{0});
    identity.failures = like.failures;
  }
  return identity;
}

/// The rows that did not fail, without gaps; `rows` receives their numbers in the step.
std::unique_ptr<ScratchBlock> only_good(const BlockView& block, std::vector<std::size_t>& rows,
                                        const Context& context) {
  std::vector<std::size_t> good_rows;
  for (std::size_t row = 0; row < block.rows; ++row)
    if (block.identity.failed == nullptr || block.identity.failed[row] == 0)
      good_rows.push_back(row);
  auto good =
      std::make_unique<ScratchBlock>(*block.spec, good_rows.size(), context.scratch,
                                     new_identity(good_rows.size(), block.identity, context));
  for (std::size_t i = 0; i < good_rows.size(); ++i) {
    copy_rows(block, good_rows[i], good->view(), i, 1);
    good_rows[i] = rows[good_rows[i]];
  }
  rows = std::move(good_rows);
  return good;
}

}  // namespace

namespace {

/// Adds each failure to the destination of its row. Rows of other processes are reported there.
void tell(RowFailures& failures, const std::uint8_t* flags,
          const std::vector<std::size_t>& step_rows, std::span<const Destination> destinations) {
  for (Failure& failure : failures.take_rows(flags)) {
    const std::size_t step_row = step_rows[failure.row];
    for (const Destination& destination : destinations) {
      const BlockView& out = *destination.rows;
      if (step_row < destination.first_row || step_row >= destination.first_row + out.rows)
        continue;
      out.identity.failures->add(std::move(failure),
                                 out.identity.failed + (step_row - destination.first_row));
      break;
    }
  }
}

}  // namespace

namespace {

/// Copies row `from_row` to its destination. If the spec was unknown, it must equal that of the
/// first batch.
Result<void> put_row(const BlockView& from, std::size_t from_row, const BlockView& to,
                     std::size_t to_row, const LeafProgram& chain) {
  if ((from.samples == nullptr) == (to.samples == nullptr)) {
    copy_rows(from, from_row, to, to_row, 1);
    return {};
  }
  to.identity.sample_id[to_row] = from.identity.sample_id[from_row];
  const auto wrong = write_row(to, to_row, read_row(from, from_row));
  if (!wrong) return {};
  Failure failure{*wrong,
                  {},
                  "the first batch decided what they are; where a size differs from batch to batch "
                  "declare .spec with that size left open",
                  nullptr,
                  from_row};
  failure.where.op = chain.whole.back().place.title;
  return failure;
}

}  // namespace

Result<void> compute_step(const Program& program, const Place& place,
                          std::span<const Destination> destinations, const Context& context,
                          const BlockView* pulled) {
  const Scratch::Frame frame(context.scratch);
  const LeafProgram& chain = program.chains[place.leaf];
  RowFailures failures;
  Identity like;
  if (!destinations.empty()) like = destinations.front().rows->identity;
  if (like.failures != nullptr) like.failures = &failures;
  const Identity first = new_identity(place.count, like, context);
  auto block =
      std::make_unique<ScratchBlock>(chain.samples->spec(), place.count, context.scratch, first);
  auto done = produce(*chain.samples, place, 0, block->view(), context, pulled);
  if (!done) return done;
  std::vector<std::size_t> good_rows(place.count);
  std::iota(good_rows.begin(), good_rows.end(), std::size_t{0});
  tell(failures, first.failed, good_rows, destinations);
  if (any_failed(block->view())) block = only_good(block->view(), good_rows, context);
  const Padding* padding = chain.padding.get();
  for (const WholeOp& step : chain.whole) {
    if (good_rows.empty()) break;  // do not call functions for zero rows
    auto next = std::make_unique<ScratchBlock>(step.spec, good_rows.size(), context.scratch,
                                               block->view().identity);
    done = apply(step, chain.samples->ids(), place.turn.pass, block->view(), next->view(), padding,
                 context);
    if (step.op->takes_samples()) padding = nullptr;  // the rows of its result have one size
    if (!done) return done;
    tell(failures, next->view().identity.failed, good_rows, destinations);
    block =
        any_failed(next->view()) ? only_good(next->view(), good_rows, context) : std::move(next);
  }
  for (const Destination& destination : destinations) {
    const BlockView& out = *destination.rows;
    for (std::size_t row = 0; out.identity.failed != nullptr && row < out.rows; ++row) {
      const bool masked = first.failed[destination.first_row + row] == kRowMasked;
      out.identity.failed[row] = masked ? kRowMasked : kRowFailed;
    }
    for (std::size_t i = 0; i < good_rows.size(); ++i) {
      const std::size_t row = good_rows[i] - destination.first_row;
      if (good_rows[i] < destination.first_row || row >= out.rows) continue;
      if (auto put = put_row(block->view(), i, out, row, chain); !put) return put;
      if (out.identity.failed != nullptr) out.identity.failed[row] = kRowGood;
    }
  }
  return {};
}

}  // namespace penstock
