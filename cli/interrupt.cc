// tested in tests/interrupt_test.py
#include "interrupt.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/pool.h"

namespace penstock::cli {
namespace {

constexpr int kSignalled = 128;

/// SIGINT and SIGTERM, except those that are ignored, as for a background job of a script.
sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

/// Writes what fits without blocking: the reader of our output may have stopped reading.
void tell(std::string_view text) {
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

extern "C" void leave_at_once(int number) {
  _exit(kSignalled + number);
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  ended_ = eventfd(0, EFD_CLOEXEC);
  thread_.emplace("penstock-signal", [this] { watch(); });
}

Interrupt::~Interrupt() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(ended_, &one, sizeof(one));
  leaving_ = true;
  thread_.reset();
  close(ended_);
  close(signals_);
}

Interrupt::Stops::Stops(Interrupt& interrupt, Loader& loader) : interrupt_(interrupt) {
  Lock lock(interrupt_.mutex_);
  interrupt_.loader_ = &loader;
}
Interrupt::Stops::~Stops() {
  Lock lock(interrupt_.mutex_);
  interrupt_.loader_ = nullptr;
}

void Interrupt::reached(std::uint64_t epoch, std::uint64_t step, std::uint64_t samples) {
  epoch_ = epoch;
  step_ = step;
  samples_ = samples;
}

void Interrupt::watch() {
  std::array<pollfd, 2> either{{{signals_, POLLIN, 0}, {ended_, POLLIN, 0}}};
  while (poll(either.data(), either.size(), -1) < 0) {
  }
  signalfd_siginfo info = {};
  if ((either[0].revents & POLLIN) == 0 || read(signals_, &info, sizeof(info)) != sizeof(info))
    return;
  // This thread takes the next signal, even while it waits.
  struct sigaction next = {};
  next.sa_handler = leave_at_once;
  const sigset_t set = watched();
  for (const int number : {SIGINT, SIGTERM})
    if (sigismember(&set, number) == 1) sigaction(number, &next, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  signal_ = static_cast<int>(info.ssi_signo);
  stop_and_wait();
}

void Interrupt::stop_and_wait() {
  using Time = std::chrono::steady_clock;
  const auto until = Time::now() + std::chrono::milliseconds(700);
  while (!leaving() && Time::now() < until) {
    {
      // Repeatedly: the subcommand may be about to start a run that the first stop did not reach.
      Lock lock(mutex_);
      if (loader_ != nullptr) loader_->stop();
    }
    sleep_thread(std::chrono::milliseconds(5));
  }
  if (!leaving_.exchange(true)) tell_and_exit(", held up in a function or by its output");
}

void Interrupt::leave() {
  if (!leaving_.exchange(true)) tell_and_exit("");
  while (true) sleep_thread(std::chrono::hours(1));  // until the thread has ended the process
}

void Interrupt::tell_and_exit(const char* where) const {
  const int number = signal();
  std::string text = fmt::format(
      "penstock: {} at epoch {}, step {}, {} samples received in it{}; what was computed ahead of "
      "that is abandoned",
      number == SIGINT ? "interrupted" : "terminated", epoch_.load(), step_.load(), samples_.load(),
      where);
  if (const unsigned stuck = Pool::abandoned(); stuck > 0)
    text += fmt::format(", and so are {} threads in functions that do not return", stuck);
  tell(text + "\n");
  // No destructors: an abandoned thread may still use the objects that they would destroy.
  _exit(kSignalled + number);
}

}  // namespace penstock::cli
