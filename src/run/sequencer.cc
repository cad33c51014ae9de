#include "run/sequencer.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "sample/rows.h"

namespace penstock {

std::string row_digest(const BlockView& block, std::size_t row) {
  Digest digest;
  digest.add(fmt::format("{}", block.identity.sample_id[row]));
  const Sample sample = read_row(block, row);
  for (const Tensor& leaf : sample.leaves()) {
    digest.add(fmt::format("{} {}", dtype_name(leaf.dtype()), shape_text(leaf.shape())));
    digest.add(leaf.text());
  }
  return digest.text();
}

Sequencer::Sequencer(std::shared_ptr<const PlanData> plan, std::uint64_t pass, StreamPlace start)
    : plan_(std::move(plan)),
      pass_(pass),
      start_(std::move(start)),
      batch_(batch_samples_of(*plan_)) {}

Result<void> Sequencer::begin(Pulling& pulling) {
  cursor_ = plan_->program.stream->open({pass_, 0});
  if (!start_.anchor) return {};
  // Samples skipped on the way here were reported before the state was saved.
  RowFailures told;
  Pulling replay = pulling;
  if (replay.failures != nullptr) replay.failures = &told;
  AnchorReader reader(*start_.anchor);
  return cursor_->restore(reader, replay);
}

Result<bool> Sequencer::pull(PulledStep& step, Anchor& after, Pulling& pulling) {
  if (!cursor_)
    if (auto done = begin(pulling); !done) return std::move(done.failure());
  auto more = cursor_->pull(step, pulling);
  if (!more) return more;
  if (!checked_ && !start_.next.empty() && start_.batch == batch_) {
    const bool same = *more && row_digest(step.buffer->rows(0, step.rows), 0) == start_.next;
    if (!same)
      throw StateError(
          fmt::format("the stream returned {} instead of the element that the state recorded",
                      *more ? "another element" : "no element"),
          {},
          "a generator must yield the same elements each time, and restore() must return to the "
          "point of save()");
  }
  checked_ = true;
  after = {};
  cursor_->save(after);
  return more;
}

}  // namespace penstock
