// tested in tests/every_position_test.cc
#include "feed/once.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "penstock/plan.h"
#include "run/compute.h"
#include "sample/rows.h"

namespace penstock {

KeptSample compute_row(const PlanData& plan, const Place& place, std::uint64_t row) {
  Scratch scratch;
  const ScratchBlock block(ElementSpec::unknown(), 1, scratch);
  if (auto done = compute_rows(plan.program, place, row, block.view(), scratch); !done) {
    done.failure().where.epoch = place.turn.pass;
    done.failure().raise();
  }
  return {0, row, block.view().identity.sample_id[0], block.view().samples[0]};
}

std::shared_ptr<BatchData> compute_once(const PlanData& plan, const RowsWanted& wanted,
                                        const ElementSpec& spec) {
  const auto layout = std::make_shared<BatchLayout>(spec, wanted.facts.all_rows());
  auto data = std::make_shared<BatchData>(layout, Slab(Allocator::heap(), layout->bytes));
  data->begin(wanted.facts);
  Scratch scratch;
  Result<void> done;
  if (is_whole(plan.program, wanted.place)) {
    const Destination destination{wanted.first_row, &data->rows()};
    done = compute_step(plan.program, wanted.place, {&destination, 1}, scratch);
  } else {
    done = compute_rows(plan.program, wanted.place, wanted.first_row, data->rows(), scratch);
  }
  if (!done) {
    done.failure().where.epoch = wanted.facts.epoch;
    done.failure().where.step = wanted.facts.step;
    done.failure().raise();
  }
  data->gather();
  return data;
}

Batch run_block(const Plan& plan, const BlockId& block) {
  const PlanData& data = *plan.data();
  if (block.step >= data.geometry.steps())
    throw ConfigError(
        fmt::format("run_block: step {} of a pass of {} steps", block.step, data.geometry.steps()));
  const Place place = data.geometry.step(block.pass, block.step);
  // A padded step is here as one share has it: its samples, then its empty slots.
  const std::uint64_t step_rows = std::max(place.count, place.padded_to);
  if (block.first > step_rows || block.count > step_rows - block.first)
    throw ConfigError(fmt::format("run_block: rows {} to {} of a step of {} rows", block.first,
                                  block.first + block.count, step_rows));
  const std::uint64_t samples =
      std::min(block.count, place.count - std::min(block.first, place.count));
  ElementSpec spec = data.program.spec;
  if (!spec.known && samples > 0)
    spec = ElementSpec::of(compute_row(data, place, block.first).sample);
  if (!spec.known) spec = ElementSpec::none();
  const ShareFacts facts{
      block.pass, block.step, 0, 1, samples, place.count, place.padded_to > 0 ? block.count : 0};
  return Batch(compute_once(data, {place, block.first, facts}, spec));
}

Sample Dataset::sample(std::uint64_t number) const {
  if (batched()) {
    const Steps steps = steps_of(*node_, std::nullopt, 0).steps;
    if (!steps.in_order())
      throw ConfigError("sample: steps are shuffled or sharded; ask the dataset before that");
    if (number >= steps.rows())
      throw ConfigError(fmt::format("sample {} of {}", number, steps.rows()));
    const PlanData plan(*this, {}, 0);
    const Place at = steps.row({0, 0}, number);
    if (!is_whole(plan.program, at)) return compute_row(plan, at, 0).sample;
    // A function of whole batches wants the step around it.
    const Node& leaf = *steps_of(*node_, std::nullopt, 0).leaves[at.leaf];
    const Groups groups = groups_of(*leaf.as<BatchVerb>(), leaf.input().size, std::nullopt);
    const std::uint64_t row = at.turn.lap * groups.count + at.first;
    const std::uint64_t step = groups.step_of(row);
    const Place whole{
        at.leaf, {at.turn.pass, at.turn.round}, groups.first(step), groups.size(step), at.period};
    const RowsWanted wanted{whole, row - whole.first, {0, step, 0, 1, 1, whole.count}};
    return Batch(compute_once(plan, wanted, plan.program.spec)).row(0);
  }
  if (!cardinality().is_endless() && number >= cardinality().count())
    throw ConfigError(fmt::format("sample {} of a dataset of {}", number, cardinality().count()));
  const StagePtr stage = compile_samples(*node_, {});
  Scratch scratch;
  const ScratchBlock block(ElementSpec::unknown(), 1, scratch);
  if (auto done = stage->produce({{0, 0}, {&number, 1}}, block.view(), scratch); !done)
    done.failure().raise();
  return block.view().samples[0];
}

}  // namespace penstock
