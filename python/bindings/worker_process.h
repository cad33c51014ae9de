#pragma once
// A worker process as its parent sees it.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "wire.h"

namespace penstock::python {

/// How long something may take that should be quick.
inline constexpr Nanoseconds kPatience = std::chrono::milliseconds(500);

/// It is at one request and may have the next one already, so that it never waits for us. A
/// request has one of two slots: memory for what goes there and for what comes back.
///
/// Rounds share it: `owner` hears what it answers, `heir` has sent the request that follows and is
/// the owner afterwards. Only the owner touches the process; what others look at, too, changes
/// with the team's mutex held.
struct WorkerProcess {
  std::atomic<pid_t> pid{-1};
  int socket = -1;
  std::array<SharedMemory, 2> inputs;
  std::array<SharedMemory, 2> results;
  bool ready = false;            // the function is there
  unsigned owes = 0;             // answers that nobody wants any more, and that come first
  Nanoseconds owes_since{0};     // the last of them
  std::uint64_t number = 0;      // of the last request
  std::uint64_t heard = 0;       // of the last one that was answered
  std::uint64_t generation = 0;  // counts the processes

  std::uint64_t owner = 0;  // tickets; 0: nobody
  std::uint64_t heir = 0;
  bool at_work = false;              // it has the owner's request
  std::uint64_t slot = 0;            // of that one
  std::uint64_t next_number = 0;     // the heir's request; 0: there is none
  bool next_sent = false;            // it has that one, too
  bool next_left = false;            // and nobody wants it any more, but it was begun
  std::array<bool, 2> being_read{};  // results, by a round that has let the worker go

  WorkerProcess() = default;
  ~WorkerProcess() { finish(false); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// True when a request can be sent to follow the one it is at.
  [[nodiscard]] bool takes_another() const {
    // What was taken back still lies in its socket, where there must be room for more.
    constexpr std::uint64_t kUnreadMax = 64;
    return owner != 0 && at_work && ready && owes == 0 && next_number == 0 &&
           !being_read[1 - slot] && number - heard < kUnreadMax;
  }
  /// How it ended, or nothing while it runs.
  std::optional<std::string> ended();
  /// Ends it: an idle one by closing the socket, so that it can put its things away.
  void finish(bool kindly);
};

}  // namespace penstock::python
