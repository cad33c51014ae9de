#include "run/stall.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace penstock {

std::string doing(const Task& task, const Program& program, Nanoseconds now) {
  const std::string op = task.activity.op();
  const std::uint64_t samples = task.activity.samples.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(now - task.began).count();
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
  const LeafProgram& chain = program.chains[task.leaf];
  const SampleKey key = chain.samples->ids().key(sample);
  const std::string file = chain.samples->ids().file_of(sample);
  return fmt::format("{} with sample {} of source {}{}{}{} ({}) for {:.1f} s", op, key.number,
                     key.source, file.empty() ? "" : ", file ", printable(file), more, place,
                     seconds);
}

StallReport stall_report(const StallFacts& facts, std::span<const Task* const> tasks,
                         const PlanData& plan, Nanoseconds now) {
  StallReport report;
  report.head = fmt::format("{}no batch for {:.1f} s: epoch {}, step {}, shares from {} of {}",
                            facts.dataset.empty() ? "" : fmt::format("dataset {}: ", facts.dataset),
                            std::chrono::duration<double>(facts.waited).count(), facts.pass,
                            facts.step, plan.options.shares.first, plan.options.shares.total);
  const Task* oldest = nullptr;
  for (const Task* task : tasks)
    if (oldest == nullptr || task->first_step < oldest->first_step) oldest = task;
  if (oldest != nullptr)
    report.lines.push_back(
        {fmt::format("waits for {}", doing(*oldest, plan.program, now)), oldest->thread});
  for (const Task* task : tasks)
    if (task != oldest)
      report.lines.push_back(
          {fmt::format("another thread: {}", doing(*task, plan.program, now)), task->thread});
  if (oldest == nullptr)
    report.head += "\n  no thread works on it: all are busy with other loaders";
  report.tail = fmt::format("\n  {} steps are in flight, {} of them complete after it",
                            facts.in_flight, facts.ready);
  return report;
}

std::vector<ThreadLine> thread_lines(std::span<const Task* const> tasks, const Program& program,
                                     Nanoseconds now) {
  std::vector<ThreadLine> lines;
  for (const Task* task : tasks)
    lines.push_back({fmt::format("in {}", doing(*task, program, now)), task->thread});
  return lines;
}

std::string abandoned_text(unsigned threads) {
  return threads == 1 ? "1 thread did not return and was abandoned"
                      : fmt::format("{} threads did not return and were abandoned", threads);
}

}  // namespace penstock
