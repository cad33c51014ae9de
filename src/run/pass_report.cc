// What a pass says about a wait that lasts too long: who holds it up, with what, since when.
// tested in src/feed/stream_wait_test.cc
#include <fmt/format.h>

#include "base/printable.h"
#include "base/report.h"
#include "run/flying.h"

namespace penstock {

std::string PassRun::doing(const Task& task) const {
  const std::string op = task.activity.op();
  const std::uint64_t samples = task.activity.samples.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(clock_.now() - task.began).count();
  const std::uint64_t sample = task.activity.first_sample.load(std::memory_order_relaxed);
  const std::string more = samples > 1 ? fmt::format(" and {} more", samples - 1) : "";
  if (task.kind == Task::Kind::pull)
    return fmt::format("{}, at element {}{} (pulling step {}) for {:.1f} s",
                       op.empty() ? "the stream" : op, sample, more, task.first_step, seconds);
  if (task.kind != Task::Kind::rows)
    return fmt::format(
        "{}, at sample {}{} ({} step {}) for {:.1f} s", op.empty() ? "an op" : op, sample, more,
        task.kind == Task::Kind::learn ? "the first sample shows the fields;" : "helping to pull",
        task.first_step, seconds);
  const std::string place = fmt::format("step {}, share {}, from row {}", task.first_step,
                                        task.first_share, task.first_row);
  if (op.empty()) return fmt::format("{} for {:.1f} s", place, seconds);
  if (task.asked_index)
    return fmt::format("{}, get({}) (step {}) for {:.1f} s", op, *task.asked_index, task.first_step,
                       seconds);
  const Chain& chain = plan_->program.chains[task.leaf];
  const SampleKey key = chain.samples->ids().key(sample);
  const std::string file = chain.samples->ids().file_of(sample);
  return fmt::format("{} with sample {} of source {}{}{}{} ({}) for {:.1f} s", op, key.number,
                     key.source, file.empty() ? "" : ", file ", printable(file), more, place,
                     seconds);
}

PassRun::Stall PassRun::stall(Nanoseconds waited) const {
  Lock lock(mutex_);
  Stall stall;
  stall.head =
      fmt::format("{}no batch for {:.1f} s: epoch {}, step {}, shares from {} of {}",
                  settings_.dataset.empty() ? "" : fmt::format("dataset {}: ", settings_.dataset),
                  std::chrono::duration<double>(waited).count(), start_.pass, delivered_.load(),
                  plan_->options.shares.first, plan_->options.shares.total);
  std::size_t ready = 0;
  for (const auto& flying : flying_) ready += flying->ready ? 1 : 0;
  const Task* oldest = nullptr;
  for (const Task* task : tasks_)
    if (oldest == nullptr || task->first_step < oldest->first_step) oldest = task;
  if (oldest != nullptr)
    stall.lines.push_back({fmt::format("waits for {}", doing(*oldest)), oldest->thread});
  for (const Task* task : tasks_)
    if (task != oldest)
      stall.lines.push_back({fmt::format("another thread: {}", doing(*task)), task->thread});
  if (oldest == nullptr) stall.head += "\n  no thread works on it: all are busy for other loaders";
  stall.tail = fmt::format("\n  {} steps are in flight, {} of them complete behind it",
                           flying_.size(), ready);
  return stall;
}

void PassRun::watch(Nanoseconds began, Nanoseconds& report_after) const {
  const Nanoseconds waited = clock_.now() - began;
  if (waited < report_after) return;
  report_after = 2 * waited;
  const Stall found = stall(waited);
  // Not under the lock: reading the stacks of an interpreter takes its time.
  const std::string text = found.head + with_stacks(found.lines) + found.tail;
  if (settings_.stall_is_error)
    throw ResourceError(text, {}, "fix what is stuck, or wait longer with stall_after");
  report(text);
}

void PassRun::report_abandoned(unsigned threads) const {
  std::vector<ThreadLine> lines;
  {
    Lock lock(mutex_);
    for (const Task* task : tasks_)
      lines.push_back({fmt::format("in {}", doing(*task)), task->thread});
  }
  report(fmt::format("{} threads did not come back and were abandoned{}", threads,
                     with_stacks(lines)));
}

}  // namespace penstock
