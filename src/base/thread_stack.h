#pragma once
// Where threads are in code that the engine cannot see into: an interpreter it is embedded in knows
// the stacks of its functions, and reports about waits quote them.

#include <functional>
#include <string>
#include <vector>

#include "base/thread.h"

namespace penstock {

/// For each thread the lines of its stack, innermost last, or nothing where that is not known. Must
/// return within a second or so whatever those threads do.
using StackReader =
    std::function<std::vector<std::vector<std::string>>(const std::vector<ThreadId>&)>;

/// Replaces the reader and returns the one before; by default there is none.
StackReader set_stack_reader(StackReader reader);

/// A line of a report, and the thread it is about.
struct ThreadLine {
  std::string text;
  ThreadId thread;
};
/// The lines, each on a line of its own with the stack of its thread below it. Call it without
/// locks. Thread-safe.
std::string with_stacks(const std::vector<ThreadLine>& lines);

}  // namespace penstock
