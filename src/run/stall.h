#pragma once
// The report of a wait that lasts too long: which threads are working, on what, and for how long.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_stack.h"
#include "penstock/clock.h"
#include "plan/plan_data.h"
#include "run/task.h"

namespace penstock {

/// The state of a pass that waits.
struct StallFacts {
  std::string dataset = {};  // its name, if it has one
  std::uint64_t pass = 0;
  std::uint64_t step = 0;  // that is awaited
  Nanoseconds waited{0};
  std::size_t in_flight = 0;  // steps
  std::size_t ready = 0;      // of these
};

/// A report without the stacks of its threads: reading those takes a while, so it happens without a
/// lock.
struct StallReport {
  std::string head;
  std::vector<ThreadLine> lines;
  std::string tail;

  [[nodiscard]] std::string text() const { return head + with_stacks(lines) + tail; }
};

/// Describes what a thread is doing.
std::string doing(const Task& task, const Program& program, Nanoseconds now);
StallReport stall_report(const StallFacts& facts, std::span<const Task* const> tasks,
                         const PlanData& plan, Nanoseconds now);
/// One line per thread that is still inside a function.
std::vector<ThreadLine> thread_lines(std::span<const Task* const> tasks, const Program& program,
                                     Nanoseconds now);
/// Says how many threads were abandoned inside a function.
std::string abandoned_text(unsigned threads);

/// Decides when to report a wait: the pause before the next report doubles.
class StallWatch {
 public:
  explicit StallWatch(Nanoseconds after) : after_(after) {}
  bool is_due(Nanoseconds waited) {
    if (waited < after_) return false;
    after_ = 2 * waited;
    return true;
  }

 private:
  Nanoseconds after_;
};

}  // namespace penstock
