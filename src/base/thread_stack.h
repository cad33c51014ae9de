#pragma once
// Stacks of threads in code outside the engine: an embedding interpreter knows the stacks of its
// functions, and stall reports include them.

#include <functional>
#include <string>
#include <vector>

#include "base/thread.h"

namespace penstock {

/// For each thread the lines of its stack, innermost last; empty if unknown. Must return within
/// about a second, whatever those threads are doing.
using StackReader =
    std::function<std::vector<std::vector<std::string>>(const std::vector<ThreadId>&)>;

/// Replaces the reader and returns the previous one; by default there is none.
StackReader set_stack_reader(StackReader reader);

/// A line of a report, and the thread it is about.
struct ThreadLine {
  std::string text;
  ThreadId thread;
};
/// The lines, each followed by the stack of its thread. Call it without locks held. Thread-safe.
std::string with_stacks(const std::vector<ThreadLine>& lines);

}  // namespace penstock
