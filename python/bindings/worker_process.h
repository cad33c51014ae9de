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

/// Used by whoever has acquired it.
struct WorkerProcess {
  std::atomic<pid_t> pid{-1};
  int socket = -1;
  SharedMemory inputs;
  std::array<SharedMemory, 2> results;  // taken in turns: one is read while the other is written
  bool ready = false;                   // the function is there
  bool owes = false;                    // an answer that nobody wants any more
  Nanoseconds owes_since{0};
  std::uint64_t number = 0;          // of the last request
  std::array<bool, 2> being_read{};  // results, by who gave the worker back; with the team's mutex

  WorkerProcess() = default;
  ~WorkerProcess() { finish(false); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  [[nodiscard]] SharedMemory& results_of(std::uint64_t request) { return results[request % 2]; }
  [[nodiscard]] Preface& preface() {
    return *reinterpret_cast<Preface*>(results_of(number).data());
  }

  /// How it ended, or nothing while it runs.
  std::optional<std::string> ended();
  /// Ends it: an idle one by closing the socket, so that it can put its things away.
  void finish(bool kindly);
};

}  // namespace penstock::python
