#pragma once
// The event trace, always on: a ring of events per thread, written without locks. Old events are
// overwritten.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::trace {

enum class Kind : std::uint8_t {
  block,      // a task ran: `rows` rows from step `step` on
  pull,       // steps of a stream were pulled, with `rows` local rows, up to step `step`
  ready,      // a step is complete
  delivered,  // the consumer received it
  waited,     // the consumer waited for it
  op,         // op `op` processed `rows` rows, the first of them sample `sample`
  read,       // a thread that reads ahead read `rows` files or parts of them
  replica,    // replica `op` computed its share of the step
};
inline constexpr std::size_t kKinds = 8;

/// Times are the recording clock's nanoseconds; `run` is one pass of one iterator.
struct Event {
  Kind kind = Kind::block;
  std::uint32_t run = 0;
  std::uint32_t rows = 0;
  std::uint64_t step = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint16_t op = 0;
  std::uint64_t sample = 0;
  std::uint32_t thread = 0;  // set by `record`
};

/// A unique number for `Event::run`.
std::uint32_t new_run();
/// Thread-safe; takes a few nanoseconds.
void record(const Event& event);
/// Events of `run` that are still in the rings, in order of their end; ties keep record order.
std::vector<Event> events_of(std::uint32_t run);

/// Reads the rings again and again, for a file that keeps more than they do.
class EventReader {
 public:
  explicit EventReader(std::uint32_t run) : run_(run) {}
  /// Events of the run since the last call, in the order of `events_of`.
  std::vector<Event> take();
  /// How many events of any run were overwritten before they were taken.
  [[nodiscard]] std::uint64_t missed() const { return missed_; }

 private:
  const std::uint32_t run_;
  std::uint64_t missed_ = 0;
  std::vector<std::uint64_t> taken_;  // by ring: events so far
};

/// The names of the threads that recorded events, by `Event::thread`.
std::vector<std::string> thread_names();

}  // namespace penstock::trace
