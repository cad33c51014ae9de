#pragma once
// The event trace, always on: a ring of events per thread, written without locks. Old events are
// overwritten.

#include <cstdint>
#include <vector>

namespace penstock::trace {

enum class Kind : std::uint8_t {
  block,      // a task ran: `rows` rows from step `step` on
  pull,       // steps of a stream were pulled, with `rows` local rows, up to step `step`
  ready,      // a step is complete
  delivered,  // the consumer received it
  waited,     // the consumer waited for it
};

/// Times are the recording clock's nanoseconds; `run` is one pass of one iterator.
struct Event {
  Kind kind = Kind::block;
  std::uint32_t run = 0;
  std::uint32_t rows = 0;
  std::uint64_t step = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

/// A unique number for `Event::run`.
std::uint32_t new_run();
/// Thread-safe; takes a few nanoseconds.
void record(const Event& event);
/// Events of `run` that are still in the rings, in order of their end; ties keep record order.
std::vector<Event> events_of(std::uint32_t run);

}  // namespace penstock::trace
