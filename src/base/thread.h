#pragma once
// The only file that starts threads.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace penstock {

/// A running thread; the destructor joins it. Debuggers and top show `name` (15 letters).
class Thread {
 public:
  Thread(const std::string& name, std::function<void()> body);
  ~Thread();
  Thread(Thread&&) noexcept;
  Thread& operator=(Thread&&) noexcept;

  void join();
  /// Detaches the thread; it must own everything it uses.
  void detach();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Threads of the process that were abandoned in calls that do not return. The caller that abandons
/// a thread increments it; the thread decrements it when it returns.
std::atomic<unsigned>& abandoned_threads();

/// Distinguishes a thread from others that are alive: its pthread_t, which Python calls its ident.
using ThreadId = std::uintptr_t;
ThreadId this_thread_id();

void yield_thread();
void sleep_thread(std::chrono::nanoseconds duration);

/// Cores of the machine; at least 1.
unsigned machine_cores();
/// Cores this process may use: the smaller of its affinity mask and its cgroup's quota; at least 1.
unsigned usable_cores();

}  // namespace penstock
