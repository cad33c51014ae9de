#include "workers.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "interpreter.h"
#include "penstock/error.h"
#include "worker_process.h"

extern char** environ;

namespace penstock::python {
namespace {

constexpr int kWorkerSocket = 3;

struct TeamList {
  Mutex mutex;
  std::set<Team*> all PENSTOCK_GUARDED_BY(mutex);
};
TeamList& teams() {
  static auto* const list = new TeamList;
  return *list;
}
std::atomic<bool> all_ended{false};
thread_local bool in_this_process = false;

}  // namespace

Team::Team(TeamSetup setup) : setup_(std::move(setup)) {
  Lock lock(teams().mutex);
  teams().all.insert(this);
}

Team::~Team() {
  {
    Lock lock(teams().mutex);
    teams().all.erase(this);
  }
  // In a child that was forked the processes are the parent's.
  if (forked_while_running()) {
    Lock lock(mutex_);
    for (auto& worker : all_) static_cast<void>(worker.release());
    return;
  }
  end();
}

void Team::lease() {
  Lock lock(mutex_);
  ++leases_;
}

void Team::give_back() {
  {
    Lock lock(mutex_);
    if (--leases_ > 0) return;
  }
  end();
}

void Team::rest() {
  {
    Lock lock(mutex_);
    if (leases_ > 1) return;
  }
  end();
}

bool Team::ended_for_good() {
  return all_ended;
}

void Team::end_all() {
  all_ended = true;
  Lock lock(teams().mutex);
  for (Team* each : teams().all) each->end();
}

std::vector<int> Team::process_ids() const {
  Lock lock(mutex_);
  std::vector<int> ids;
  for (const auto& worker : all_)
    if (worker->pid > 0) ids.push_back(worker->pid);
  return ids;
}

void Team::end() {
  std::vector<std::unique_ptr<Worker>> all;
  {
    Lock lock(mutex_);
    stopping_ = true;
    for (const auto& [ticket, bell] : bells_) ring(ticket);
    while (!bells_.empty()) changed_.wait(mutex_);
    stopping_ = false;
    all.swap(all_);
    idle_.clear();
    setup_memory_.reset();
  }
  // All are told before the first is waited for.
  for (const auto& worker : all) {
    const bool kindly = worker->ready && worker->owes == 0;
    if (!kindly && worker->pid > 0) kill(worker->pid, SIGKILL);
    if (worker->socket >= 0) close(std::exchange(worker->socket, -1));
  }
  for (const auto& worker : all) worker->finish(true);
}

void Team::spawn(Worker& worker) {
  if (all_ended) throw CancelledError("the interpreter ends");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw ResourceError(fmt::format("no socket for a worker process: {}", strerror(errno)));
  std::vector<char*> arguments;
  for (const std::string& word : setup_.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kWorkerSocket);
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
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    throw ResourceError(fmt::format("{}: no worker process can be started with {}: {}",
                                    setup_.title, setup_.command.front(), strerror(failed)),
                        {}, "use fewer workers, or none");
  }
  int setup = -1;
  {
    Lock lock(mutex_);
    worker.pid = pid;
    worker.socket = ends[0];
    ++worker.generation;
    worker.heard = worker.number;
    setup = setup_memory_->descriptor();
  }
  const int descriptors[] = {setup, worker.inputs[0].descriptor(), worker.inputs[1].descriptor(),
                             worker.results[0].descriptor(), worker.results[1].descriptor()};
  send_descriptors(worker.socket, descriptors, 5);  // one that died already is found later
}

void Team::end_process(Worker& worker, bool kindly) {
  int socket = -1;
  {
    Lock lock(mutex_);
    socket = std::exchange(worker.socket, -1);
    worker.ready = false;
    worker.owes = 0;
    worker.at_work = false;
  }
  if (socket >= 0) close(socket);
  worker.finish(kindly);
}

void Team::start() {
  if (!setup_memory_) {
    setup_memory_ = std::make_unique<SharedMemory>();
    WireWriter(*setup_memory_).text(setup_.setup);
  }
  for (unsigned i = 0; i < setup_.workers; ++i) {
    all_.push_back(std::make_unique<Worker>());
    idle_.push_back(all_.back().get());
  }
}

std::uint64_t Team::enter(int bell) {
  Lock lock(mutex_);
  const std::uint64_t ticket = ++last_ticket_;
  bells_[ticket] = bell;
  wanting_.insert(ticket);
  return ticket;
}

void Team::leave(std::uint64_t ticket) {
  Lock lock(mutex_);
  wanting_.erase(ticket);
  bells_.erase(ticket);
  tell_next();
  changed_.notify_all();
}

void Team::wants_more(std::uint64_t ticket) {
  Lock lock(mutex_);
  wanting_.insert(ticket);
}

void Team::wants_no_more(std::uint64_t ticket) {
  Lock lock(mutex_);
  wanting_.erase(ticket);
  tell_next();
}

void Team::ring(std::uint64_t ticket) {
  if (const auto found = bells_.find(ticket); found != bells_.end())
    eventfd_write(found->second, 1);
}

void Team::tell_next() {
  if (!wanting_.empty()) return ring(*wanting_.begin());
  for (const auto& worker : all_)
    if (worker->next_number != 0) ring(worker->heir);
}

std::optional<Team::Seat> Team::acquire(std::uint64_t ticket) {
  Lock lock(mutex_);
  if (stopping_ || *wanting_.begin() != ticket) return std::nullopt;
  if (all_.empty()) start();
  if (!idle_.empty()) {
    // One that owes an answer must give it first.
    auto best = std::ranges::find_if(idle_, [](const Worker* each) { return each->owes == 0; });
    if (best == idle_.end()) best = idle_.begin();
    Worker* const found = *best;
    idle_.erase(best);
    found->owner = ticket;
    return Seat{found};
  }
  for (const auto& worker : all_) {
    if (!worker->takes_another()) continue;
    worker->heir = ticket;
    worker->next_number = ++worker->number;
    worker->next_sent = false;
    return Seat{worker.get(), true, worker->next_number, 1 - worker->slot};
  }
  return std::nullopt;
}

bool Team::take_back(Worker& worker, std::uint64_t number) {
  std::uint64_t waits = number;
  if (worker.next_sent &&
      !worker.inputs[1 - worker.slot].preface().waiting.compare_exchange_strong(waits, 0))
    return false;
  worker.heir = worker.next_number = 0;
  return true;
}

void Team::release(Worker& worker) {
  Lock lock(mutex_);
  const bool left = std::exchange(worker.next_left, false);
  const bool inherited = worker.next_number != 0 && !left;
  worker.owner = inherited ? worker.heir : 0;
  worker.at_work = inherited && worker.next_sent;
  if (inherited) worker.slot = 1 - worker.slot;
  worker.heir = worker.next_number = 0;
  if (inherited) {
    ring(worker.owner);
    return tell_next();
  }
  if (left && worker.pid > 0) {
    ++worker.owes;
    worker.owes_since = Clock::real().now();
  }
  idle_.insert(idle_.begin(), &worker);  // the one that is warm comes first
  tell_next();
}

TeamLeases::~TeamLeases() {
  if (forked_while_running()) return;
  for (const auto& team : teams_) team->give_back();
}

void TeamLeases::rest() const {
  for (const auto& team : teams_) team->rest();
}

std::vector<int> TeamLeases::process_ids() const {
  std::vector<int> ids;
  for (const auto& team : teams_)
    for (const int id : team->process_ids()) ids.push_back(id);
  return ids;
}

InThisProcess::InThisProcess(bool so) : before_(in_this_process) {
  in_this_process = in_this_process || so;
}

InThisProcess::~InThisProcess() {
  in_this_process = before_;
}

bool InThisProcess::now() {
  return in_this_process;
}

void throw_sent(const std::string& sent) {
  with_interpreter([&] {
    const nb::bytes bytes(sent.data(), sent.size());
    const nb::object arrived = nb::module_::import_("penstock.travel").attr("received")(bytes);
    const nb::object raised = arrived[0];
    // What led to an error stays in the worker, and with it whether it may pass.
    if (const int number = nb::cast<int>(arrived[1]); number != 0)
      throw UserOsError(number, text_of(raised), hold(raised));
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
    throw nb::python_error();
  });
  throw InternalError("an exception of a worker got lost");
}

}  // namespace penstock::python
