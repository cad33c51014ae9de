#pragma once
// Ctrl-C and SIGTERM, for verbs that run a loader. There is no code in a signal handler but a
// second signal's exit: a thread reads signals from a descriptor and stops the loader.

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/thread.h"
#include "penstock/loader.h"

namespace penstock::cli {

/// Make it before any other thread is started, since threads inherit which signals are blocked.
/// A signal that was ignored when the command began stays so.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// While it lives a signal stops `loader`: a wait in it ends with CancelledError. Its end waits
  /// for a stop that is under way.
  class Stops {
   public:
    Stops(Interrupt& interrupt, Loader& loader);
    ~Stops();
    Stops(const Stops&) = delete;
    Stops& operator=(const Stops&) = delete;

   private:
    Interrupt& interrupt_;
  };

  /// The signal that came, or 0.
  [[nodiscard]] int signal() const { return signal_.load(); }
  /// Notes what the consumer has received.
  void reached(std::uint64_t epoch, std::uint64_t step, std::uint64_t samples);
  /// Says where the run was, and what is left undone; ends the process with 128 + the signal.
  /// A verb has 700 ms to come here, then that is done for it.
  [[noreturn]] void leave();

 private:
  void watch();
  void stop_and_wait();
  [[noreturn]] void tell_and_exit(const char* where) const;
  [[nodiscard]] bool leaving() const { return leaving_.load(); }

  int signals_ = -1;  // descriptor from which they are read
  int ended_ = -1;    // descriptor that wakes the thread at the end
  std::atomic<int> signal_{0};
  std::atomic<bool> leaving_{false};
  std::atomic<std::uint64_t> epoch_{0};
  std::atomic<std::uint64_t> step_{0};
  std::atomic<std::uint64_t> samples_{0};
  Mutex mutex_;  // held while a loader is stopped
  Loader* loader_ PENSTOCK_GUARDED_BY(mutex_) = nullptr;
  std::optional<Thread> thread_;
};

}  // namespace penstock::cli
