// Stacks of Python functions, for reports about long waits.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "areas.h"
#include "base/mutex.h"
#include "base/thread_stack.h"
#include "interpreter.h"

namespace penstock::python {
namespace {

using Stacks = std::vector<std::vector<std::string>>;

/// The frames of one thread, innermost last, as in a traceback.
std::vector<std::string> lines_of(nb::handle frame) {
  constexpr std::size_t kFramesMax = 12;
  std::vector<std::string> lines;
  const nb::list frames(nb::module_::import_("traceback").attr("extract_stack")(frame));
  const std::size_t count = nb::len(frames);
  const std::size_t first = count > kFramesMax ? count - kFramesMax : 0;
  if (first > 0) lines.push_back(fmt::format("({} calls above)", first));
  for (std::size_t i = first; i < count; ++i) {
    const nb::object entry = frames[i];
    std::string line = fmt::format("File \"{}\", line {}, in {}", text_of(entry.attr("filename")),
                                   text_of(entry.attr("lineno")), text_of(entry.attr("name")));
    if (const std::string source = text_of(entry.attr("line")); !source.empty())
      line += fmt::format(": {}", source);
    lines.push_back(std::move(line));
  }
  return lines;
}

/// Call it with the GIL held. A thread that runs no Python code has no frames.
Stacks current_stacks(const std::vector<ThreadId>& threads) {
  const auto frames = nb::cast<nb::dict>(nb::module_::import_("sys").attr("_current_frames")());
  Stacks stacks;
  for (const ThreadId thread : threads) {
    const nb::int_ ident(thread);
    stacks.push_back(frames.contains(ident) ? lines_of(frames[ident]) : std::vector<std::string>());
  }
  return stacks;
}

/// Shared by a thread that waits for the GIL and the thread that waits for its answer.
struct Answer {
  Mutex mutex;
  Condition changed;
  bool done PENSTOCK_GUARDED_BY(mutex) = false;
  Stacks stacks PENSTOCK_GUARDED_BY(mutex);
};

/// Runs in its own thread: a function that does not release the GIL must not keep the report about
/// it from being printed.
Stacks read_stacks(const std::vector<ThreadId>& threads) {
  constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(1);
  const auto answer = std::make_shared<Answer>();
  Thread reader("penstock-stacks", [answer, threads] {
    Stacks stacks;
    try {
      stacks = with_interpreter([&] { return current_stacks(threads); });
    } catch (const std::exception&) {  // a report without stacks is better than none
    }
    Lock lock(answer->mutex);
    answer->stacks = std::move(stacks);
    answer->done = true;
    answer->changed.notify_all();
  });
  const auto until = std::chrono::steady_clock::now() + kPatience;
  Lock lock(answer->mutex);
  while (!answer->done) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) {
      reader.detach();
      return Stacks(threads.size(), {"(its Python stack is not known: the interpreter is busy)"});
    }
    answer->changed.wait_for(answer->mutex, left);
  }
  reader.detach();  // it accesses nothing but the answer
  return std::move(answer->stacks);
}

}  // namespace

void bind_stacks(nb::module_&) {
  set_stack_reader([](const std::vector<ThreadId>& threads) {
    if (interpreter_ends() || forked_while_running()) return Stacks();
    try {
      return read_stacks(threads);
    } catch (const std::exception&) {  // no thread could be started
      return Stacks();
    }
  });
}

}  // namespace penstock::python
