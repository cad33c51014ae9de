#include "workers.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "interpreter.h"
#include "penstock/error.h"
#include "trace/activity.h"
#include "worker_process.h"

extern char** environ;

namespace penstock::python {
namespace {

constexpr int kLookAgainMs = 20;  // a wait that is not wanted any more ends this soon
constexpr int kDeathsMax = 3;
constexpr double kBlockNanoseconds = 500e3;  // a block worth its trip
constexpr int kWorkerSocket = 3;

struct TeamList {
  Mutex mutex;
  std::set<Team*> all PENSTOCK_GUARDED_BY(mutex);
};
TeamList& teams() {
  static auto* const list = new TeamList;
  return *list;
}
std::atomic<bool> ended_for_good{false};
thread_local bool in_this_process = false;

std::size_t divide_up(std::size_t amount, std::size_t by) {
  return (amount + by - 1) / by;
}

}  // namespace

/// A block that a worker is at.
struct Team::Flight {
  std::size_t first = 0;
  std::size_t rows = 0;
  int deaths = 0;
  Worker* worker = nullptr;
};

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

void Team::end_all() {
  ended_for_good = true;
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
  std::set<Worker*> idle;
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    while (calls_ > 0) changed_.wait(mutex_);
    stopping_ = false;
    all.swap(all_);
    idle = {idle_.begin(), idle_.end()};
    idle_.clear();
    setup_memory_.reset();
  }
  // All are told before the first is waited for.
  for (const auto& worker : all) {
    const bool kindly = worker->ready && !worker->owes;
    if (!kindly && worker->pid > 0) kill(worker->pid, SIGKILL);
    if (worker->socket >= 0) close(std::exchange(worker->socket, -1));
  }
  for (const auto& worker : all) worker->finish(true);
}

void Team::spawn(Worker& worker) {
  if (ended_for_good) throw CancelledError("the interpreter ends");
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
  worker.pid = pid;
  worker.socket = ends[0];
  worker.ready = false;
  worker.owes = false;
  int setup = -1;
  {
    Lock lock(mutex_);
    setup = setup_memory_->descriptor();
  }
  const int descriptors[] = {setup, worker.inputs.descriptor(), worker.results[0].descriptor(),
                             worker.results[1].descriptor()};
  send_descriptors(worker.socket, descriptors, 4);  // one that died already is found later
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

Team::Worker* Team::acquire(std::uint64_t ticket, bool wait) {
  Lock lock(mutex_);
  if (all_.empty() && !stopping_) start();
  const auto mine = [&]() PENSTOCK_REQUIRES(mutex_) {
    return !idle_.empty() && *wanting_.begin() == ticket;
  };
  if (!mine() && wait) changed_.wait_for(mutex_, std::chrono::milliseconds(kLookAgainMs));
  if (!mine() || stopping_) return nullptr;
  // One that owes an answer must give it first.
  auto best = std::ranges::find_if(idle_, [](const Worker* each) { return !each->owes; });
  if (best == idle_.end()) best = idle_.begin();
  Worker* const found = *best;
  idle_.erase(best);
  return found;
}

bool Team::is_first(std::uint64_t ticket) const {
  Lock lock(mutex_);
  return *wanting_.begin() == ticket;
}

void Team::wants_no_more(std::uint64_t ticket) {
  Lock lock(mutex_);
  wanting_.erase(ticket);
  changed_.notify_all();
}

void Team::release(Worker& worker) {
  Lock lock(mutex_);
  idle_.insert(idle_.begin(), &worker);  // the one that is warm comes first
  changed_.notify_all();
}

/// One call of `run`: its blocks, those that wait and those that are out.
class Team::Round {
 public:
  Round(Team& team, WorkerJob& job) : team_(team), job_(job) {
    {
      Lock lock(team_.mutex_);
      ++team_.calls_;
      // Steps are worked on oldest first: who came first is served first.
      ticket_ = team_.next_ticket_++;
      team_.wanting_.insert(ticket_);
    }
    std::size_t block = job.rows;
    if (job.divisible) {
      block = divide_up(job.rows, 2ULL * team_.workers());
      if (const double cost = team_.row_ns_.load(); cost > 0)
        block = std::max(block, static_cast<std::size_t>(kBlockNanoseconds / cost));
    }
    block = std::clamp<std::size_t>(block, 1, std::max<std::size_t>(1, job.rows));
    for (std::size_t first = 0; first < job.rows; first += block)
      waiting_.push_back({first, std::min(block, job.rows - first)});
  }
  ~Round() {
    for (Flight& flight : out_) {
      flight.worker->owes = true;
      flight.worker->owes_since = Clock::real().now();
      team_.release(*flight.worker);
    }
    Lock lock(team_.mutex_);
    team_.wanting_.erase(ticket_);
    --team_.calls_;
    team_.changed_.notify_all();
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  Result<void> run() {
    Nanoseconds looked = Clock::real().now();
    while (!waiting_.empty() || !out_.empty()) {
      const std::size_t at = out_.empty() ? waiting_.front().first : out_.front().first;
      if (const auto id = job_.sample_id(at)) trace::at_sample(*id);
      if (!trace::still_wanted() || team_.stopping_) return cancelled(at);
      look_for_interrupts(looked);
      send_waiting();
      if (!out_.empty()) listen();
    }
    if (failure_) return std::move(*failure_);
    return {};
  }

 private:
  /// While it lives nobody may have the worker write where the results of `number` are.
  class Reading {
   public:
    Reading(Team& team, Worker& worker, std::uint64_t number)
        : team_(team), flag_(worker.being_read[number % 2]) {
      Lock lock(team_.mutex_);
      flag_ = true;
    }
    ~Reading() {
      Lock lock(team_.mutex_);
      flag_ = false;
      team_.changed_.notify_all();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    static void wait_until_done(Team& team, const Worker& worker, std::uint64_t number) {
      Lock lock(team.mutex_);
      while (worker.being_read[number % 2]) team.changed_.wait(team.mutex_);
    }

   private:
    Team& team_;
    bool& flag_;
  };

  /// Where the consumer's own thread works it is the one that must see Ctrl-C.
  static void look_for_interrupts(Nanoseconds& looked) {
    constexpr Nanoseconds kPause = std::chrono::milliseconds(50);
    if (getpid() != gettid() || Clock::real().now() - looked < kPause) return;
    looked = Clock::real().now();
    look_for_signals();
  }

  void send_waiting() {
    if (waiting_.empty()) return;
    while (!waiting_.empty()) {
      Worker* const worker = team_.acquire(ticket_, out_.empty());
      if (worker == nullptr) return;
      Flight flight = waiting_.front();
      flight.worker = worker;
      waiting_.pop_front();
      out_.push_back(flight);
      send(out_.back());
    }
    team_.wants_no_more(ticket_);
  }

  /// Its function does not return, and nobody waits for it.
  static bool overdue(const Worker& worker) {
    return worker.owes && Clock::real().now() - worker.owes_since > kPatience;
  }

  /// Gives the block to its worker; one that is not there, or busy for nobody, is started anew.
  void send(Flight& flight) {
    Worker& worker = *flight.worker;
    if (overdue(worker)) worker.finish(false);
    if (worker.pid < 0 || worker.ended()) {
      worker.finish(false);
      team_.spawn(worker);
    }
    if (!worker.owes) write(flight);
  }

  void write(Flight& flight) {
    Worker& worker = *flight.worker;
    WireWriter to(worker.inputs);
    job_.write(to, flight.first, flight.rows);
    Message message;
    message.word = job_.word;
    message.random = job_.random ? 1 : 0;
    message.number = ++worker.number;
    Reading::wait_until_done(team_, worker, message.number);
    worker.preface().row.store(0);
    message.rows = flight.rows;
    message.bytes = to.bytes();
    send_message(worker.socket, message);  // one that is gone shows when we listen
  }

  void listen() {
    std::vector<pollfd> sockets;
    for (const Flight& flight : out_) sockets.push_back({flight.worker->socket, POLLIN, 0});
    if (poll(sockets.data(), sockets.size(), kLookAgainMs) <= 0) {
      // A child of the worker may keep its socket open after its death.
      for (std::size_t i = out_.size(); i-- > 0;) {
        if (const auto how = out_[i].worker->ended()) {
          died(i, *how);
        } else if (overdue(*out_[i].worker)) {
          send(out_[i]);
        }
      }
      return;
    }
    for (std::size_t i = out_.size(); i-- > 0;)
      if (sockets[i].revents != 0) hear(i);
  }

  void hear(std::size_t index) {
    Flight& flight = out_[index];
    Worker& worker = *flight.worker;
    Message message;
    switch (receive_message(worker.socket, message, 0)) {
      case Received::nothing:
        return;
      case Received::gone:
        // The socket closes a moment before there is something to wait for.
        for (int tries = 0; tries < 100; ++tries) {
          if (const auto how = worker.ended()) return died(index, *how);
          poll(nullptr, 0, 1);
        }
        return died(index, "closed its socket");
      case Received::message:
        break;
    }
    worker.results_of(message.number).look_again(message.bytes);
    if (message.word == Word::ready || message.word == Word::cannot) {
      if (message.word == Word::cannot) cannot_start(worker, message);
      worker.ready = true;
      team_.start_deaths_ = 0;
      return;
    }
    if (message.number != worker.number) return;
    if (worker.owes) {
      worker.owes = false;
      return write(flight);
    }
    const Flight done = flight;
    out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(index));
    // It goes on with our next block while we take what it made, unless somebody came before us.
    if (!waiting_.empty() && message.word == Word::made && team_.is_first(ticket_)) {
      out_.push_back(waiting_.front());
      waiting_.pop_front();
      out_.back().worker = &worker;
      write(out_.back());
      if (waiting_.empty()) team_.wants_no_more(ticket_);
      return take(done, message);
    }
    // Whoever comes next has it at work while we read.
    const Reading reading(team_, worker, message.number);
    team_.release(worker);
    take(done, message);
  }

  [[noreturn]] void cannot_start(Worker& worker, const Message& message) {
    WireReader from(worker.results_of(message.number), message.bytes);
    const std::string why = from.text();
    worker.finish(true);
    throw ConfigError(
        fmt::format("{}: the function cannot be made in a worker process: {}", team_.setup_.title,
                    why),
        {},
        "define it in a module that can be imported there, with all that it uses; or leave out "
        "workers=, and it runs in threads");
  }

  void note(Failure failure) {
    if (failure_ && failure_->row <= failure.row) return;
    failure_ = std::move(failure);
    // Rows behind it are asked for again, if they are wanted; those before it must be made.
    std::erase_if(waiting_, [&](const Flight& each) { return each.first > failure_->row; });
    if (waiting_.empty()) team_.wants_no_more(ticket_);
  }

  void take(const Flight& done, const Message& message) {
    Worker& worker = *done.worker;
    if (message.noticed != 0 && !team_.told_.exchange(true)) tell_of_global_use();
    if (message.rows > 0 && message.took_ns > 0 && job_.divisible) {
      const double cost = static_cast<double>(message.took_ns) / static_cast<double>(message.rows);
      const double before = team_.row_ns_.load();
      team_.row_ns_ = before == 0 ? cost : 0.9 * before + 0.1 * cost;
    }
    WireReader from(worker.results_of(message.number), message.bytes);
    const std::size_t made = std::min<std::size_t>(message.rows, done.rows);
    auto read = made > 0 ? job_.read(from, done.first, made) : Result<void>();
    if (!read) return note(std::move(read.failure()));
    if (message.word == Word::made) return;
    const std::size_t row = done.first + made;
    auto failed = guarded(
        [&] {
          if (message.word == Word::raised) throw_sent(from.text());
          const std::string text = from.text();
          throw ConfigError(text, {}, from.text());
        },
        [&] { return row; });
    failed.failure().row_known = job_.word == Word::samples || done.rows == 1;
    note(std::move(failed.failure()));
  }

  void tell_of_global_use() const {
    with_interpreter([&] {
      nb::module_::import_("penstock.randomness").attr("tell_of_global_use")(team_.setup_.title);
    });
  }

  void wait_again(const Flight& flight) {
    waiting_.push_front(flight);
    Lock lock(team_.mutex_);
    team_.wanting_.insert(ticket_);
  }

  void died(std::size_t index, const std::string& how) {
    Flight flight = out_[index];
    Worker& worker = *flight.worker;
    const bool started = worker.ready;
    const std::uint64_t at = worker.preface().row.load() % std::max<std::size_t>(1, flight.rows);
    out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(index));
    const bool for_nobody = worker.owes;
    worker.finish(false);
    worker.owes = false;
    team_.release(worker);
    flight.worker = nullptr;
    if (!started && ++team_.start_deaths_ >= kDeathsMax)
      throw ResourceError(
          fmt::format("{}: a worker process {} while it started, {} times in a row",
                      team_.setup_.title, how, kDeathsMax),
          {}, "its words are on stderr; leave out workers= to run the function in threads");
    if (started && !for_nobody) ++flight.deaths;
    if (flight.deaths < kDeathsMax) return wait_again(flight);
    if (at > 0 && job_.word == Word::samples) wait_again({flight.first, at});
    Failure failure{
        fmt::format("the worker process {}, {} times on this {}", how, kDeathsMax,
                    flight.rows == 1 || job_.word == Word::samples ? "sample" : "block"),
        {},
        "Loader(debug=True) runs the function in this process, where a debugger sees it",
        nullptr,
        flight.first + at};
    failure.row_known = job_.word == Word::samples || flight.rows == 1;
    note(std::move(failure));
  }

  Team& team_;
  WorkerJob& job_;
  std::uint64_t ticket_ = 0;
  std::deque<Flight> waiting_;
  std::vector<Flight> out_;
  std::optional<Failure> failure_;
};

Result<void> Team::run(WorkerJob& job) {
  if (job.rows == 0) return {};
  if (ended_for_good) return cancelled(0);
  return Round(*this, job).run();
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
    const nb::object raised = nb::module_::import_("penstock.travel").attr("received")(bytes);
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
    throw nb::python_error();
  });
  throw InternalError("an exception of a worker got lost");
}

}  // namespace penstock::python
