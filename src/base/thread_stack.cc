#include "base/thread_stack.h"

#include <fmt/format.h>

#include <utility>

#include "base/mutex.h"

namespace penstock {
namespace {

Mutex reader_mutex;
StackReader reader PENSTOCK_GUARDED_BY(reader_mutex);

StackReader current_reader() {
  Lock lock(reader_mutex);
  return reader;
}

}  // namespace

StackReader set_stack_reader(StackReader next) {
  Lock lock(reader_mutex);
  return std::exchange(reader, std::move(next));
}

std::string with_stacks(const std::vector<ThreadLine>& lines) {
  std::vector<std::vector<std::string>> stacks;
  if (const StackReader read = current_reader(); read && !lines.empty()) {
    std::vector<ThreadId> threads;
    for (const ThreadLine& line : lines) threads.push_back(line.thread);
    stacks = read(threads);
  }
  stacks.resize(lines.size());
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += fmt::format("\n  {}", lines[i].text);
    for (const std::string& frame : stacks[i]) text += fmt::format("\n    {}", frame);
  }
  return text;
}

}  // namespace penstock
