// One call of a team: its blocks go to workers and come back.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "interpreter.h"
#include "penstock/error.h"
#include "trace/activity.h"
#include "worker_process.h"
#include "workers.h"

namespace penstock::python {
namespace {

constexpr int kLookAgainMs = 20;  // a wait that is not wanted any more ends this soon
constexpr int kDeathsMax = 3;
constexpr double kBlockNanoseconds = 500e3;  // a block worth its trip

std::size_t divide_up(std::size_t amount, std::size_t by) {
  return (amount + by - 1) / by;
}

/// Ends a thread's wait for answers when there is something else to look at.
class Bell {
 public:
  Bell() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0)
      throw ResourceError(fmt::format("no event for worker processes: {}", strerror(errno)));
  }
  ~Bell() { close(descriptor_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  [[nodiscard]] int descriptor() const { return descriptor_; }
  void be_silent() const {
    eventfd_t rung = 0;
    eventfd_read(descriptor_, &rung);
  }

 private:
  int descriptor_;
};

const Bell& bell_of_this_thread() {
  thread_local const Bell bell;
  return bell;
}

}  // namespace

/// A block that was given to a worker.
struct Team::Flight {
  std::size_t first = 0;
  std::size_t rows = 0;
  int deaths = 0;
  Worker* worker = nullptr;
  bool queued = false;  // another round hears the worker until this block's turn comes
  bool sent = false;
  std::uint64_t number = 0;
  std::uint64_t slot = 0;
  std::uint64_t generation = 0;  // of the process it was sent to
};

class Team::Round {
 public:
  Round(Team& team, WorkerJob& job)
      : team_(team),
        job_(job),
        bell_(bell_of_this_thread()),
        ticket_(team.enter(bell_.descriptor())) {
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
    std::erase_if(out_, [&](const Flight& flight) { return left_queue(flight); });
    for (const Flight& flight : out_) {
      if (flight.sent) {
        Lock lock(team_.mutex_);
        ++flight.worker->owes;
        flight.worker->owes_since = Clock::real().now();
      }
      team_.release(*flight.worker);
    }
    team_.leave(ticket_);
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
      take_over();
      take_back_for_idle();
      send_waiting();
      listen();
    }
    if (failure_) return std::move(*failure_);
    return {};
  }

 private:
  /// While it lives nobody has the worker write to the results in `slot`.
  class Reading {
   public:
    Reading(Team& team, Worker& worker, std::uint64_t slot)
        : team_(team), flag_(worker.being_read[slot]) {
      Lock lock(team_.mutex_);
      flag_ = true;
    }
    ~Reading() {
      Lock lock(team_.mutex_);
      flag_ = false;
      team_.tell_next();
      team_.changed_.notify_all();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    /// The slot for a worker that is at nothing.
    static std::uint64_t free_slot(Team& team, const Worker& worker) {
      Lock lock(team.mutex_);
      while (worker.being_read[0] && worker.being_read[1]) team.changed_.wait(team.mutex_);
      return worker.being_read[0] ? 1 : 0;
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
      const auto seat = team_.acquire(ticket_);
      if (!seat) return;
      Flight flight = waiting_.front();
      flight.worker = seat->worker;
      flight.queued = seat->queued;
      flight.sent = false;
      flight.number = seat->number;
      flight.slot = seat->slot;
      waiting_.pop_front();
      out_.push_back(flight);
      if (seat->queued) {
        queue(out_.back());
      } else {
        send(out_.back());
      }
    }
    team_.wants_no_more(ticket_);
  }

  /// Sends a block to follow the one that the worker is at.
  void queue(Flight& flight) {
    const std::size_t bytes = write_inputs(flight);
    {
      Lock lock(team_.mutex_);
      if (flight.worker->next_number == flight.number) {
        post(flight, bytes);
        flight.worker->next_sent = true;
        return;
      }
    }
    flight.queued = false;  // it came to us meanwhile
    send(flight);
  }

  /// Blocks whose turn has come: we hear their workers from now on.
  void take_over() {
    for (Flight& flight : out_) {
      if (!flight.queued) continue;
      bool there = false;
      {
        Lock lock(team_.mutex_);
        if (flight.worker->next_number == flight.number) continue;
        there = flight.worker->pid > 0 && flight.worker->generation == flight.generation;
      }
      flight.queued = false;
      if (!there) send(flight);  // the process died before it came to us
    }
  }

  /// A block that waits behind another one is for the worker that is idle now.
  void take_back_for_idle() {
    Lock lock(team_.mutex_);
    if (!team_.wanting_.empty() && *team_.wanting_.begin() < ticket_) return;
    std::size_t idle = team_.idle_.size();
    for (auto flight = out_.begin(); flight != out_.end() && idle > 0;) {
      if (flight->queued && flight->worker->next_number == flight->number &&
          take_back(*flight->worker, flight->number)) {
        waiting_.push_front({flight->first, flight->rows, flight->deaths});
        flight = out_.erase(flight);
        team_.wanting_.insert(ticket_);
        --idle;
      } else {
        ++flight;
      }
    }
  }

  /// True for a block that is not, or not yet, ours to hear: nothing is left to do for it.
  bool left_queue(const Flight& flight) {
    if (!flight.queued) return false;
    Lock lock(team_.mutex_);
    Worker& worker = *flight.worker;
    if (worker.next_number != flight.number) return false;
    if (!take_back(worker, flight.number)) worker.next_left = true;
    team_.tell_next();
    return true;
  }

  /// Its function does not return, and nobody waits for it.
  static bool overdue(const Worker& worker) {
    return worker.owes > 0 && Clock::real().now() - worker.owes_since > kPatience;
  }

  /// Gives the block to its worker; one that is not there, or busy for nobody, is started anew.
  void send(Flight& flight) {
    Worker& worker = *flight.worker;
    flight.sent = false;
    if (overdue(worker)) team_.end_process(worker, false);
    if (worker.pid < 0 || worker.ended()) {
      team_.end_process(worker, false);
      team_.spawn(worker);
    }
    if (worker.owes == 0) write(flight);
  }

  /// To a worker that is at nothing.
  void write(Flight& flight) {
    Worker& worker = *flight.worker;
    flight.slot = Reading::free_slot(team_, worker);
    const std::size_t bytes = write_inputs(flight);
    Lock lock(team_.mutex_);
    flight.number = ++worker.number;
    post(flight, bytes);
    worker.slot = flight.slot;
    worker.at_work = true;
    team_.tell_next();
  }

  [[nodiscard]] std::size_t write_inputs(const Flight& flight) const {
    WireWriter to(flight.worker->inputs[flight.slot]);
    job_.write(to, flight.first, flight.rows);
    return to.bytes();
  }

  /// With the team's mutex: the worker's owner may close the socket.
  void post(Flight& flight, std::size_t bytes) const {
    Worker& worker = *flight.worker;
    worker.inputs[flight.slot].preface().waiting.store(flight.number);
    worker.results[flight.slot].preface().row.store(0);
    flight.generation = worker.generation;
    flight.sent = true;
    Message message;
    message.word = job_.word;
    message.random = job_.random ? 1 : 0;
    message.number = flight.number;
    message.slot = flight.slot;
    message.rows = flight.rows;
    message.bytes = bytes;
    send_message(worker.socket, message);  // one that is gone shows when we listen
  }

  void listen() {
    if (waiting_.empty() && out_.empty()) return;
    std::vector<pollfd> sockets;
    for (const Flight& flight : out_)
      sockets.push_back({flight.queued ? -1 : flight.worker->socket, POLLIN, 0});
    sockets.push_back({bell_.descriptor(), POLLIN, 0});
    const int heard = poll(sockets.data(), sockets.size(), kLookAgainMs);
    if (sockets.back().revents != 0) bell_.be_silent();
    for (std::size_t i = out_.size(); heard > 0 && i-- > 0;)
      if (sockets[i].revents != 0) hear(i);
    const Nanoseconds now = Clock::real().now();
    if (now - looked_after_ < std::chrono::milliseconds(kLookAgainMs)) return;
    looked_after_ = now;
    look_after_silent();
  }

  /// A child of the worker may keep its socket open after its death.
  void look_after_silent() {
    for (std::size_t i = out_.size(); i-- > 0;) {
      if (out_[i].queued) continue;
      if (const auto how = out_[i].worker->ended()) {
        died(i, *how);
      } else if (overdue(*out_[i].worker)) {
        send(out_[i]);
      }
    }
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
    {
      Lock lock(team_.mutex_);
      worker.heard = std::max(worker.heard, message.number);
    }
    if (message.word == Word::cannot) cannot_start(worker, message);
    if (message.word == Word::ready) {
      team_.start_deaths_ = 0;
      Lock lock(team_.mutex_);
      worker.ready = true;
      team_.tell_next();
      return;
    }
    if (!flight.sent || message.number != flight.number) return heard_what_was_owed(flight);
    const Flight done = flight;
    out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(index));
    // It goes on, for whoever is next, while we read what it made.
    const Reading reading(team_, worker, done.slot);
    team_.release(worker);
    take(done, message);
  }

  void heard_what_was_owed(Flight& flight) {
    Worker& worker = *flight.worker;
    {
      Lock lock(team_.mutex_);
      if (worker.owes > 0) --worker.owes;
      team_.tell_next();
    }
    if (worker.owes == 0 && !flight.sent) write(flight);
  }

  [[noreturn]] void cannot_start(Worker& worker, const Message& message) {
    worker.results[0].look_again(message.bytes);
    WireReader from(worker.results[0], message.bytes);
    const std::string why = from.text();
    team_.end_process(worker, true);
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
    SharedMemory& results = done.worker->results[done.slot];
    results.look_again(message.bytes);
    if (message.noticed != 0 && !team_.told_.exchange(true)) tell_of_global_use();
    if (message.rows > 0 && message.took_ns > 0 && job_.divisible) {
      const double cost = static_cast<double>(message.took_ns) / static_cast<double>(message.rows);
      const double before = team_.row_ns_.load();
      team_.row_ns_ = before == 0 ? cost : 0.9 * before + 0.1 * cost;
    }
    WireReader from(results, message.bytes);
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

  void wait_again(std::size_t first, std::size_t rows, int deaths) {
    waiting_.push_front({first, rows, deaths});
    team_.wants_more(ticket_);
  }

  void died(std::size_t index, const std::string& how) {
    const Flight flight = out_[index];
    Worker& worker = *flight.worker;
    const bool started = worker.ready;
    const std::uint64_t at = flight.sent ? worker.results[flight.slot].preface().row.load() %
                                               std::max<std::size_t>(1, flight.rows)
                                         : 0;
    out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(index));
    const bool for_nobody = worker.owes > 0;
    team_.end_process(worker, false);
    team_.release(worker);
    if (!started && ++team_.start_deaths_ >= kDeathsMax)
      throw ResourceError(
          fmt::format("{}: a worker process {} while it started, {} times in a row",
                      team_.setup_.title, how, kDeathsMax),
          {}, "its words are on stderr; leave out workers= to run the function in threads");
    const int deaths = flight.deaths + (started && !for_nobody ? 1 : 0);
    if (deaths < kDeathsMax) return wait_again(flight.first, flight.rows, deaths);
    if (at > 0 && job_.word == Word::samples) wait_again(flight.first, at, 0);
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
  const Bell& bell_;
  const std::uint64_t ticket_;
  std::deque<Flight> waiting_;  // blocks that no worker has
  std::vector<Flight> out_;
  Nanoseconds looked_after_ = Clock::real().now();
  std::optional<Failure> failure_;
};

Result<void> Team::run(WorkerJob& job) {
  if (job.rows == 0) return {};
  if (ended_for_good()) return cancelled(0);
  return Round(*this, job).run();
}

}  // namespace penstock::python
