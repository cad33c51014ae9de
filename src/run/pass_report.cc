// What a pass says about a wait that lasts too long: who holds it up, with what, since when.
// tested in src/feed/stream_wait_test.cc
#include <fmt/format.h>

#include "base/printable.h"
#include "base/report.h"
#include "run/flying.h"

namespace penstock {

std::string PassRun::doing(const Task& task) const {
  const std::string* const op = task.activity.op.load(std::memory_order_relaxed);
  const std::uint64_t samples = task.activity.samples.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(clock_.now() - task.began).count();
  const std::uint64_t sample = task.activity.first_sample.load(std::memory_order_relaxed);
  const std::string more = samples > 1 ? fmt::format(" and {} more", samples - 1) : "";
  if (task.kind == Task::Kind::pull)
    return fmt::format("{}, at element {}{} (pulling step {}) for {:.1f} s",
                       op == nullptr ? "the stream" : *op, sample, more, task.first_step, seconds);
  if (task.kind != Task::Kind::rows)
    return fmt::format(
        "{}, at sample {}{} ({} step {}) for {:.1f} s", op == nullptr ? "an op" : *op, sample, more,
        task.kind == Task::Kind::learn ? "the first sample shows the fields;" : "helping to pull",
        task.first_step, seconds);
  const std::string place = fmt::format("step {}, share {}, from row {}", task.first_step,
                                        task.first_share, task.first_row);
  if (op == nullptr) return fmt::format("{} for {:.1f} s", place, seconds);
  if (task.pieces.front().step->asked_for)
    return fmt::format("{}, get({}) (step {}) for {:.1f} s", *op, task.pieces.front().step->index,
                       task.first_step, seconds);
  const Chain& chain = plan_->program.chains[task.pieces.front().step->place.leaf];
  const SampleKey key = chain.samples->ids().key(sample);
  const std::string file = chain.samples->ids().file_of(sample);
  return fmt::format("{} with sample {} of source {}{}{}{} ({}) for {:.1f} s", *op, key.number,
                     key.source, file.empty() ? "" : ", file ", printable(file), more, place,
                     seconds);
}

std::string PassRun::stall_text(Nanoseconds waited) const {
  const std::uint64_t step = delivered_.load();
  std::string text =
      fmt::format("{}no batch for {:.1f} s: epoch {}, step {}, shares from {} of {}",
                  settings_.dataset.empty() ? "" : fmt::format("dataset {}: ", settings_.dataset),
                  std::chrono::duration<double>(waited).count(), start_.pass, step,
                  plan_->options.shares.first, plan_->options.shares.total);
  std::size_t ready = 0;
  for (const auto& flying : flying_) ready += flying->ready ? 1 : 0;
  const Task* oldest = nullptr;
  for (const Task* task : tasks_)
    if (oldest == nullptr || task->first_step < oldest->first_step) oldest = task;
  if (oldest != nullptr) text += fmt::format("\n  waits for {}", doing(*oldest));
  for (const Task* task : tasks_)
    if (task != oldest) text += fmt::format("\n  another thread: {}", doing(*task));
  if (oldest == nullptr) text += "\n  no thread works on it: all are busy for other loaders";
  return text + fmt::format("\n  {} steps are in flight, {} of them complete behind it",
                            flying_.size(), ready);
}

void PassRun::watch(Nanoseconds began, Nanoseconds& report_after) {
  const Nanoseconds waited = clock_.now() - began;
  if (waited < report_after) return;
  report_after = 2 * waited;
  const std::string text = stall_text(waited);
  if (settings_.stall_is_error)
    throw ResourceError(text, {}, "fix what is stuck, or wait longer with stall_after");
  report(text);
}

}  // namespace penstock
