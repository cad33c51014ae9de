#pragma once
// Ctrl-C and SIGTERM, for subcommands that run a loader. The only code in a signal handler is the
// exit on a second signal: a thread reads signals from a descriptor and stops the loader.

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/thread.h"
#include "penstock/loader.h"

namespace penstock::cli {

/// Construct it before any other thread starts, since threads inherit the signal mask. A signal
/// that was ignored when the command started stays ignored.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// While it exists, a signal stops `loader`: a wait in it ends with CancelledError. The
  /// destructor waits for a stop in progress.
  class Stops {
   public:
    Stops(Interrupt& interrupt, Loader& loader);
    ~Stops();
    Stops(const Stops&) = delete;
    Stops& operator=(const Stops&) = delete;

   private:
    Interrupt& interrupt_;
  };

  /// The signal that was received, or 0.
  [[nodiscard]] int signal() const { return signal_.load(); }
  /// Records what the consumer has received.
  void reached(std::uint64_t epoch, std::uint64_t step, std::uint64_t samples);
  /// Prints the position of the run and what is left undone, and ends the process with 128 + the
  /// signal. If a subcommand does not call it within 700 ms, the thread does.
  [[noreturn]] void leave();

 private:
  void watch();
  void stop_and_wait();
  [[noreturn]] void tell_and_exit(const char* where) const;
  [[nodiscard]] bool leaving() const { return leaving_.load(); }

  int signals_ = -1;  // descriptor from which signals are read
  int ended_ = -1;    // descriptor that wakes the thread at the end
  std::atomic<int> signal_{0};
  std::atomic<bool> leaving_{false};
  std::atomic<std::uint64_t> epoch_{0};
  std::atomic<std::uint64_t> step_{0};
  std::atomic<std::uint64_t> samples_{0};
  Mutex mutex_;  // locked while a loader is being stopped
  Loader* loader_ PENSTOCK_GUARDED_BY(mutex_) = nullptr;
  std::optional<Thread> thread_;
};

}  // namespace penstock::cli
