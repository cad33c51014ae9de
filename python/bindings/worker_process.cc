#include "worker_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace penstock::python {
namespace {

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return fmt::format("was killed by signal {} ({})", number, strsignal(number));
  }
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

}  // namespace

std::optional<std::string> WorkerProcess::ended() {
  if (pid < 0) return "is gone";
  int status = 0;
  const pid_t found = waitpid(pid, &status, WNOHANG);
  if (found == 0) return std::nullopt;
  pid = -1;
  return found < 0 ? "was reaped by somebody else" : how_it_ended(status);
}

void WorkerProcess::finish(bool kindly) {
  if (socket >= 0) close(std::exchange(socket, -1));
  if (pid < 0) return;
  const auto until = Clock::real().now() + (kindly ? kPatience / 2 : Nanoseconds{0});
  while (!ended()) {
    if (Clock::real().now() >= until) {
      kill(pid, SIGKILL);
      int status = 0;
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
      pid = -1;
      return;
    }
    poll(nullptr, 0, 2);
  }
}

}  // namespace penstock::python
