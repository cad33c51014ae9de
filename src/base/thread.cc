#include "base/thread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "base/cgroup.h"

namespace penstock {

class Thread::Impl {
 public:
  std::thread thread;
};

Thread::Thread(const std::string& name, std::function<void()> body)
    : impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([name = name.substr(0, 15), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    body();
  });
}

Thread::Thread(Thread&&) noexcept = default;
Thread& Thread::operator=(Thread&& other) noexcept {
  if (this != &other) {
    if (impl_) join();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Thread::~Thread() {
  if (impl_) join();
}

void Thread::join() {
  if (impl_->thread.joinable()) impl_->thread.join();
}

void Thread::detach() {
  if (impl_->thread.joinable()) impl_->thread.detach();
}

std::atomic<unsigned>& abandoned_threads() {
  static std::atomic<unsigned> count{0};
  return count;
}

ThreadId this_thread_id() {
  return static_cast<ThreadId>(pthread_self());
}

void yield_thread() {
  std::this_thread::yield();
}

void sleep_thread(std::chrono::nanoseconds duration) {
  std::this_thread::sleep_for(duration);
}

unsigned machine_cores() {
  return std::max(1U, std::thread::hardware_concurrency());
}

unsigned usable_cores() {
  cpu_set_t mask;
  unsigned cores = machine_cores();
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    cores = static_cast<unsigned>(CPU_COUNT(&mask));
  static const std::optional<double> quota = cgroup_limits().cores;
  if (quota && *quota < cores) cores = static_cast<unsigned>(std::floor(*quota));
  return std::max(1U, cores);
}

}  // namespace penstock
