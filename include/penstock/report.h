#pragma once
// What a loader did in an epoch, in numbers.

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// Counters and times of one epoch, as far as they are still recorded: each thread keeps its latest
/// events.
struct Report {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;  // delivered
  std::uint64_t rows = 0;   // delivered
  std::uint64_t waits = 0;  // how often the consumer waited for a step
  double wait_seconds = 0;  // and how long in all
  std::uint64_t tasks = 0;  // pieces of work that threads did
  double work_seconds = 0;  // and how long they took, over all threads
  /// How far ahead the epoch works, how many rows a task has, and why: a line for each change.
  std::vector<std::string> decisions = {};

  /// For people: a line of numbers, then the decisions.
  [[nodiscard]] std::string str() const;
};

}  // namespace penstock
