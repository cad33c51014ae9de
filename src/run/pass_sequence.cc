// The part of a pass that asks a Sequence for its batches: how many rows a step has, and so how it
// is cut, is known when the answer is there.
// tested in src/feed/sequence_test.cc
#include <fmt/format.h>

#include <utility>

#include "order/cut.h"
#include "run/compute.h"
#include "run/flying.h"
#include "sample/rows.h"

namespace penstock {

void PassRun::await_answer(Flying& flying, std::uint64_t step) {
  flying.step = step;
  flying.index = flying.place.first;
  flying.whole = true;
  flying.shares.clear();
  flying.first_row.clear();
  flying.share_rows.clear();
  flying.learned_rows = 0;
  flying.rows_here = 1;
  flying.missing = 1;
  flying.ready = false;
}

Result<void> PassRun::ask(const Place& place, std::uint64_t step, SequenceBatch& batch) {
  const Chain& chain = plan_->program.chains[place.leaf];
  auto done = chain.sequence->get(
      {place.first, chain.first_id, start_.pass, place.turn.occurrence()}, batch);
  if (!done) done.failure().where.step = step;
  return done;
}

Failure PassRun::too_few_rows(const Flying& flying, std::size_t rows) const {
  const Chain& chain = plan_->program.chains[flying.place.leaf];
  Failure failure{fmt::format("{}: get({}) gave {} rows for {} processes, and some would have none",
                              chain.sequence->title(), flying.index, rows,
                              plan_->options.shares.total)};
  failure.remedy = "make no batch that small, or say empty=deliver where the loop can do without";
  return failure;
}

/// Batches may differ in size; those of one size share their layout, so that slabs are used again.
std::shared_ptr<const BatchLayout> PassRun::layout_for(std::size_t rows) {
  Lock lock(mutex_);
  auto& layout = layouts_[rows];
  if (!layout) layout = std::make_shared<BatchLayout>(mold_.layout->spec, rows);
  return layout;
}

Result<void> PassRun::compute_asked(Flying& flying) {
  SequenceBatch& asked = flying.make_given().asked;
  bool learned = false;
  {
    Lock lock(mutex_);
    if (const auto found = learned_batches_.find(flying.step); found != learned_batches_.end()) {
      asked = std::move(found->second);
      learned_batches_.erase(found);
      learned = true;
    }
  }
  if (!learned)
    if (auto done = ask(flying.place, flying.step, asked); !done) return done;
  const BlockView& rows = asked.view;
  if (settings_.no_empty_share && rows.rows < plan_->options.shares.total)
    return too_few_rows(flying, rows.rows);
  flying.place.first = 0;
  flying.place.count = rows.rows;
  const Shares& shares = plan_->options.shares;
  const auto layout = layout_for(Cut{rows.rows, shares.total}.size(0));
  flying.bytes.resize(layout->bytes * shares.count);
  fill(flying, flying.step, layout);
  if (flying.whole && write_learned_step(flying)) return {};
  flying.learned_rows = write_learned_rows(flying);
  Scratch& scratch = thread_scratch();
  std::vector<BlockView> parts;
  std::vector<Destination> destinations;
  for (std::size_t i = 0; i < flying.shares.size(); ++i) parts.push_back(rows_of(flying, i));
  for (std::size_t i = 0; i < parts.size(); ++i)
    destinations.push_back({flying.first_row[i], &parts[i]});
  if (flying.whole) return compute_step(plan_->program, flying.place, destinations, scratch, &rows);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Scratch::Frame frame(scratch);
    const std::uint64_t learned_rows = flying.learned_rows_of(i);
    const std::uint64_t first_row = flying.first_row[i] + learned_rows;
    const BlockView part = cut_rows(parts[i], learned_rows, parts[i].rows - learned_rows, scratch);
    auto done = compute_rows(plan_->program, flying.place, first_row, part, scratch, &rows);
    if (done) continue;
    done.failure().row += first_row;
    return done;
  }
  return {};
}

}  // namespace penstock
