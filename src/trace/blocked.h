#pragma once
// The time that a thread has spent inside its work without computing: in reads, waiting for the
// interpreter's lock, waiting for another process. An op's share is the difference before and after
// its call. Thread-local, since waits happen in places that no context reaches: the binding that
// takes the interpreter's lock is called from everywhere.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/clock.h"

namespace penstock::trace {

/// Nanoseconds; 0 if the clock jumped back.
inline std::uint64_t count_between(Nanoseconds began, Nanoseconds ended) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, (ended - began).count()));
}

/// Totals of one thread, in nanoseconds.
struct Blocked {
  std::uint64_t lock = 0;     // the interpreter's
  std::uint64_t process = 0;  // answers of worker processes
  std::uint64_t read = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t retry = 0;     // pauses before retries
  std::uint64_t replicas = 0;  // others, in a collective
};

/// Those of the calling thread.
inline Blocked& blocked_here() {
  thread_local Blocked totals;
  return totals;
}

/// Adds the time from construction to destruction to one of these totals.
class BlockedSpan {
 public:
  explicit BlockedSpan(std::uint64_t& total) : total_(total), began_(Clock::real().now()) {}
  ~BlockedSpan() { total_ += count_between(began_, Clock::real().now()); }
  BlockedSpan(const BlockedSpan&) = delete;
  BlockedSpan& operator=(const BlockedSpan&) = delete;

 private:
  std::uint64_t& total_;
  const Nanoseconds began_;
};

/// Failures after which the calling thread tried again, until the op's call ends.
inline std::vector<std::string>& retries_here() {
  thread_local std::vector<std::string> failures;
  return failures;
}
inline void note_retry(std::string failure, Nanoseconds pause) {
  blocked_here().retry += static_cast<std::uint64_t>(pause.count());
  retries_here().push_back(std::move(failure));
}

}  // namespace penstock::trace
