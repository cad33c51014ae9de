// tested in tests/every_position_test.cc
#include "feed/compute_alone.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "penstock/plan.h"
#include "run/compute.h"
#include "run/sequencer.h"
#include "sample/rows.h"

namespace penstock {

Place asked_place(const PlanData& plan, const Place& place, SequenceBatch& batch) {
  if (!plan.program.chains[place.leaf].sequence) return place;
  Scratch scratch;
  if (auto done = ask_sequence(plan.program, place, std::nullopt, batch, scratch); !done)
    done.failure().raise();
  return {place.leaf, place.turn, 0, batch.view.rows};
}

Sample compute_row(const PlanData& plan, const Place& place, std::uint64_t row,
                   const BlockView* pulled) {
  Scratch scratch;
  const bool whole = is_whole(plan.program, place);
  const ScratchBlock block(ElementSpec::unknown(), whole ? place.count : 1, scratch);
  const Destination all{0, &block.view()};
  auto done = whole ? compute_step(plan.program, place, {&all, 1}, scratch, pulled)
                    : compute_rows(plan.program, place, row, block.view(), scratch, pulled);
  if (!done) {
    done.failure().where.epoch = place.turn.pass;
    done.failure().raise();
  }
  return block.view().samples[whole ? row : 0];
}

std::shared_ptr<BatchData> compute_alone(const PlanData& plan, const RowsWanted& wanted,
                                         const ElementSpec& spec) {
  const auto open = plan.program.spec.known ? nullptr : std::make_shared<OpenSizes>();
  const auto layout = std::make_shared<BatchLayout>(spec, wanted.facts.all_rows(), open);
  auto data = std::make_shared<BatchData>(layout, Slab(Allocator::heap(), layout->bytes));
  data->begin(wanted.facts, form_of(plan.program, wanted.place));
  Scratch scratch;
  Result<void> done;
  BlockView rows = data->rows();
  std::vector<std::uint8_t> flags(rows.rows, kRowGood);
  if (plan.program.masks) rows.identity.failed = flags.data();
  if (is_whole(plan.program, wanted.place)) {
    const Destination destination{wanted.first_row, &rows};
    done = compute_step(plan.program, wanted.place, {&destination, 1}, scratch, wanted.pulled);
  } else {
    done = compute_rows(plan.program, wanted.place, wanted.first_row, rows, scratch, wanted.pulled);
  }
  if (done) {
    data->drop_rows(flags);
    done = data->gather();
  }
  if (!done) {
    done.failure().where.epoch = wanted.facts.epoch;
    done.failure().where.step = wanted.facts.step;
    done.failure().raise();
  }
  return data;
}

namespace {

Batch compute_block(const PlanData& data, const BlockId& block, const Place& place,
                    const BlockView* pulled) {
  // A padded step is shown as a single share: its samples, then its padding.
  const std::uint64_t step_rows = std::max(place.count, place.padded_to);
  if (block.first > step_rows || block.count > step_rows - block.first)
    throw ConfigError(fmt::format("run_block: rows {} to {} of a step of {} rows", block.first,
                                  block.first + block.count, step_rows));
  const std::uint64_t samples =
      std::min(block.count, place.count - std::min(block.first, place.count));
  ElementSpec spec = data.program.spec;
  if (!spec.known && place.count > 0)
    spec = ElementSpec::of(compute_row(data, place, samples > 0 ? block.first : 0, pulled));
  if (!spec.known) spec = ElementSpec::none();
  const ShareFacts facts{
      block.pass, block.step, 0, 1, samples, place.count, place.padded_to > 0 ? block.count : 0};
  return Batch(compute_alone(data, {place, block.first, facts, pulled}, spec));
}

/// Reads the stream from its start up to the step.
Batch run_stream_block(const Plan& plan, const BlockId& block) {
  Scratch scratch;
  Pulling pulling{scratch};
  Sequencer sequencer(plan.data(), block.pass, {});
  PulledStep pulled;
  for (std::uint64_t step = 0; step <= block.step; ++step) {
    Anchor after;
    auto more = sequencer.pull(pulled, after, pulling);
    if (!more) more.failure().raise();
    if (!*more)
      throw ConfigError(fmt::format("run_block: step {} is out of range: the pass has {} steps",
                                    block.step, step));
  }
  const BlockView rows = pulled.buffer->rows(0, pulled.rows);
  return compute_block(*plan.data(), block, place_of(pulled), &rows);
}

/// Sample `number` of a stream that is not batched.
Sample stream_sample(const Node& root, std::uint64_t number) {
  const FlowPtr flow = compile_flow(root, {});
  const CursorPtr cursor = flow->open({0, 0});
  Scratch scratch;
  Pulling pulling{scratch};
  RowBuffer buffer(flow->spec());
  buffer.reserve(1);
  const BlockView row = buffer.rows(0, 1);
  auto skipped = skip_rows(*cursor, flow->spec(), number, pulling);
  if (!skipped) skipped.failure().raise();
  auto got = cursor->pull(row, pulling);
  if (!got) got.failure().raise();
  if (*got == 0)
    throw ConfigError(
        fmt::format("sample {} is out of range: the stream has {}", number, *skipped));
  Sample sample = read_row(row, 0);
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : sample.leaves()) leaves.push_back(leaf.kept());
  return Sample::assemble(sample.structure(), std::move(leaves));
}

}  // namespace

Batch run_block(const Plan& plan, const BlockId& block) {
  const PlanData& data = *plan.data();
  if (data.program.stream) return run_stream_block(plan, block);
  if (block.step >= data.geometry.steps())
    throw ConfigError(fmt::format("run_block: step {} is out of range: the pass has {} steps",
                                  block.step, data.geometry.steps()));
  SequenceBatch batch;
  const Place place = asked_place(data, data.geometry.step(block.pass, block.step), batch);
  return compute_block(data, block, place, batch.view.spec != nullptr ? &batch.view : nullptr);
}

Sample Dataset::sample(std::uint64_t number) const {
  if (is_unresolved(*node_)) return resolve().sample(number);
  if (streamed()) {
    if (batched())
      throw ConfigError("sample: not available for a batched stream", {},
                        "call it before batch, or use a Loader");
    return stream_sample(*node_, number);
  }
  if (batched()) {
    if (has_sequence(compile(*node_, {})))
      throw ConfigError("sample: for a Sequence use unbatch().sample(number)");
    const Steps steps = steps_of(*node_, std::nullopt, 0).steps;
    if (!steps.in_order())
      throw ConfigError(
          "sample: steps are shuffled or sharded; call it on the dataset before that");
    if (number >= steps.rows())
      throw ConfigError(
          fmt::format("sample {} is out of range: there are {}", number, steps.rows()));
    const PlanData plan(*this, {}, 0);
    const Place at = steps.row({0, 0}, number);
    if (!is_whole(plan.program, at)) return compute_row(plan, at, 0);
    // A function of whole batches needs the whole step.
    const Node& leaf = *steps_of(*node_, std::nullopt, 0).leaves[at.leaf];
    const Groups groups = *leaf.groups(std::nullopt);
    const std::uint64_t row = at.turn.lap * groups.count + at.first;
    const std::uint64_t step = groups.step_of(row);
    const Place whole{
        at.leaf, {at.turn.pass, at.turn.round}, groups.first(step), groups.size(step), at.period};
    if (!plan.program.spec.known) return compute_row(plan, whole, row - whole.first);
    const RowsWanted wanted{whole, row - whole.first, {0, step, 0, 1, 1, whole.count}};
    return Batch(compute_alone(plan, wanted, plan.program.spec)).row(0);
  }
  if (!cardinality().is_endless() && number >= cardinality().count())
    throw ConfigError(fmt::format("sample {} is out of range: the dataset has {}", number,
                                  cardinality().count()));
  const StagePtr stage = compile_samples(*node_, {});
  Scratch scratch;
  const ScratchBlock block(ElementSpec::unknown(), 1, scratch);
  if (auto done = stage->produce({{0, 0}, {&number, 1}}, block.view(), scratch); !done)
    done.failure().raise();
  return block.view().samples[0];
}

}  // namespace penstock
