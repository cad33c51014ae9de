#include "worker_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "penstock/error.h"

extern char** environ;

namespace penstock::python {
namespace {

constexpr int kWorkerSocket = 3;

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return fmt::format("was killed by signal {} ({})", number, strsignal(number));
  }
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

}  // namespace

SpawnedProcess::SpawnedProcess(std::shared_ptr<const WorkerProgram> program,
                               std::shared_ptr<const SharedMemory> setup)
    : program_(std::move(program)), setup_(std::move(setup)) {}

SpawnedProcess::~SpawnedProcess() {
  SpawnedProcess::stop(false);
}

pid_t SpawnedProcess::spawn(int socket) const {
  std::vector<char*> arguments;
  for (const std::string& word : program_->command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&actions, socket, kWorkerSocket);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ctrl-C goes to the whole group: a worker must not see it before it has learned to ignore it.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int failed =
      posix_spawn(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    throw ResourceError(fmt::format("{}: no worker process can be started with {}: {}",
                                    program_->title, program_->command.front(), strerror(failed)),
                        {}, "use fewer workers, or none");
  return pid;
}

void SpawnedProcess::start(const WorkerMemory& memory) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw ResourceError(fmt::format("no socket for a worker process: {}", strerror(errno)));
  try {
    pid_ = spawn(ends[1]);
  } catch (...) {
    close(ends[0]);
    close(ends[1]);
    throw;
  }
  close(ends[1]);
  const int descriptors[] = {setup_->descriptor(), memory.inputs[0].descriptor(),
                             memory.inputs[1].descriptor(), memory.results[0].descriptor(),
                             memory.results[1].descriptor()};
  send_descriptors(ends[0], descriptors, 5);  // a process that died already is noticed later
  Lock lock(mutex_);
  socket_ = ends[0];
}

void SpawnedProcess::send(const Message& message) {
  Lock lock(mutex_);
  if (socket_ >= 0) send_message(socket_, message);
}

Received SpawnedProcess::receive(Message& message) {
  return receive_message(descriptor(), message, 0);
}

int SpawnedProcess::descriptor() const {
  Lock lock(mutex_);
  return socket_;
}

std::optional<std::string> SpawnedProcess::ended() {
  if (pid_ < 0) return "is gone";
  int status = 0;
  const pid_t found = waitpid(pid_, &status, WNOHANG);
  if (found == 0) return std::nullopt;
  pid_ = -1;
  return found < 0 ? "was reaped by somebody else" : how_it_ended(status);
}

void SpawnedProcess::hang_up(bool kill) {
  if (kill && pid_ > 0) ::kill(pid_, SIGKILL);
  Lock lock(mutex_);
  if (socket_ >= 0) close(std::exchange(socket_, -1));
}

void SpawnedProcess::stop(bool kindly) {
  hang_up(false);
  if (pid_ < 0) return;
  const auto until = Clock::real().now() + (kindly ? kPatience / 2 : Nanoseconds{0});
  while (!ended()) {
    if (Clock::real().now() >= until) {
      kill(pid_, SIGKILL);
      int status = 0;
      while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
      pid_ = -1;
      return;
    }
    poll(nullptr, 0, 2);
  }
}

std::vector<std::unique_ptr<WorkerProcess>> spawned_processes(
    const std::shared_ptr<const WorkerProgram>& program, unsigned count) {
  const auto setup = std::make_shared<SharedMemory>();
  WireWriter(*setup).text(program->setup);
  std::vector<std::unique_ptr<WorkerProcess>> processes;
  for (unsigned i = 0; i < count; ++i)
    processes.push_back(std::make_unique<SpawnedProcess>(program, setup));
  return processes;
}

}  // namespace penstock::python
