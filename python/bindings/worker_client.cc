#include "worker_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "penstock/clock.h"
#include "penstock/error.h"
#include "trace/blocked.h"

namespace penstock::python {
namespace {

constexpr int kLookAgainMs = 20;  // a wait that is not wanted any more ends this soon
constexpr unsigned kStartDeathsMax = 3;

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

 private:
  int descriptor_;
};

int bell_of_this_thread() {
  thread_local const Bell bell;
  return bell.descriptor();
}

}  // namespace

WorkerClient::WorkerClient(WorkerPool& pool, const WorkerJob& job)
    : pool_(pool),
      job_(job),
      bell_(bell_of_this_thread()),
      ticket_(pool.enter(bell_)),
      looked_after_(pool.options_.clock->now()) {}

WorkerClient::~WorkerClient() {
  for (const Request& request : sent_)
    if (!request.follows || !pool_.withdraw_next(*request.worker, request.number))
      pool_.release(*request.worker, request.sent);
  pool_.leave(ticket_);
}

void WorkerClient::submit(const WorkerBlock& block) {
  const auto later = std::ranges::upper_bound(waiting_, block.first, {}, &WorkerBlock::first);
  waiting_.insert(later, block);
  if (waiting_.size() == 1) pool_.want_place(ticket_);
}

void WorkerClient::withdraw_after(std::size_t row) {
  std::erase_if(waiting_, [&](const WorkerBlock& block) { return block.first > row; });
  if (waiting_.empty()) pool_.want_no_place(ticket_);
}

std::size_t WorkerClient::first_row() const {
  return sent_.empty() ? waiting_.front().first : sent_.front().block.first;
}

std::vector<WorkerEvent> WorkerClient::wait() {
  take_over();
  take_back_for_idle();
  send_waiting();
  std::vector<WorkerEvent> events;
  std::vector<pollfd> sockets;
  for (const Request& request : sent_)
    sockets.push_back({request.follows ? -1 : request.worker->process->descriptor(), POLLIN, 0});
  sockets.push_back({bell_, POLLIN, 0});
  const Nanoseconds began = Clock::real().now();
  const int readable = poll(sockets.data(), sockets.size(), kLookAgainMs);
  trace::blocked_here().process += trace::count_between(began, Clock::real().now());
  if (sockets.back().revents != 0) {
    eventfd_t rung = 0;
    eventfd_read(bell_, &rung);
  }
  for (std::size_t i = sent_.size(); readable > 0 && i-- > 0;)
    if (sockets[i].revents != 0) hear(i, events);
  const Nanoseconds now = pool_.options_.clock->now();
  if (now - looked_after_ >= std::chrono::milliseconds(kLookAgainMs)) {
    looked_after_ = now;
    look_after_silent(events);
  }
  return events;
}

/// Requests whose turn has come: their workers are ours.
void WorkerClient::take_over() {
  for (Request& request : sent_) {
    if (!request.follows) continue;
    const WorkerPool::Next next = pool_.next(*request.worker, request.number);
    if (next == WorkerPool::Next::waits) continue;
    request.follows = false;
    if (next == WorkerPool::Next::unsent) send(request);  // the process died before its turn
  }
}

/// A request that waits behind another one is for the worker that is idle now.
void WorkerClient::take_back_for_idle() {
  const auto follows = [](const Request& request) { return request.follows; };
  if (std::ranges::none_of(sent_, follows)) return;
  std::size_t idle = pool_.idle_workers_for(ticket_);
  std::erase_if(sent_, [&](const Request& request) {
    if (idle == 0 || !request.follows || !pool_.take_back(*request.worker, request.number))
      return false;
    submit(request.block);
    --idle;
    return true;
  });
}

void WorkerClient::send_waiting() {
  if (waiting_.empty()) return;
  while (!waiting_.empty()) {
    const auto place = pool_.place_for(ticket_);
    if (!place) return;
    sent_.push_back(
        {waiting_.front(), place->worker, place->follows, false, place->number, place->slot});
    waiting_.pop_front();
    if (place->follows) {
      send_following(sent_.back());
    } else {
      send(sent_.back());
    }
  }
  pool_.want_no_place(ticket_);
}

void WorkerClient::send_following(Request& request) {
  Message message = message_for(request);
  message.number = request.number;
  request.sent = pool_.send_next(*request.worker, message);
  if (request.sent) return;
  request.follows = false;  // the worker became ours while we wrote
  send(request);
}

/// Sends the request to a worker that is ours. A process that is gone, or busy with something that
/// nobody wants, is started anew.
void WorkerClient::send(Request& request) {
  PooledWorker& worker = *request.worker;
  request.sent = false;
  if (pool_.overdue(worker)) pool_.stop_process(worker, false);
  if (worker.process->ended()) {
    pool_.stop_process(worker, false);
    pool_.start_process(worker);
  }
  if (!pool_.owes(worker)) write(request);
}

void WorkerClient::write(Request& request) {
  request.slot = pool_.free_slot(*request.worker);
  request.number = pool_.send(*request.worker, message_for(request));
  request.sent = true;
}

/// Writes the inputs, too.
Message WorkerClient::message_for(const Request& request) const {
  WireWriter to(request.worker->memory.inputs[request.slot]);
  job_.write(to, request.block.first, request.block.rows);
  Message message;
  message.word = job_.word;
  message.random = job_.random ? 1 : 0;
  message.slot = request.slot;
  message.rows = request.block.rows;
  message.bytes = to.bytes();
  return message;
}

void WorkerClient::hear(std::size_t index, std::vector<WorkerEvent>& events) {
  Request& request = sent_[index];
  PooledWorker& worker = *request.worker;
  Message message;
  switch (worker.process->receive(message)) {
    case Received::nothing:
      return;
    case Received::gone:
      return died(index, how_it_ended(worker), events);
    case Received::message:
      break;
  }
  pool_.heard(worker, message);
  if (message.word == Word::cannot) cannot_start(worker, message);
  if (message.word == Word::ready) return;
  if (!request.sent || message.number != request.number) {
    if (pool_.heard_owed_answer(worker) && !request.sent) write(request);
    return;
  }
  // The worker goes on, for whoever is next, while we read its results.
  events.emplace_back(
      WorkerAnswer{request.block, message, ResultsLease(pool_, worker, request.slot)});
  sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(index));
  pool_.release(worker, false);
}

std::string WorkerClient::how_it_ended(PooledWorker& worker) const {
  // The socket closes a moment before there is something to wait for.
  for (int tries = 0; tries < 100; ++tries) {
    if (auto how = worker.process->ended()) return *std::move(how);
    poll(nullptr, 0, 1);
  }
  return "closed its socket";
}

/// A child of a worker may keep its socket open after the worker's death.
void WorkerClient::look_after_silent(std::vector<WorkerEvent>& events) {
  for (std::size_t i = sent_.size(); i-- > 0;) {
    if (sent_[i].follows) continue;
    if (const auto how = sent_[i].worker->process->ended()) {
      died(i, *how, events);
    } else if (pool_.overdue(*sent_[i].worker)) {
      send(sent_[i]);
    }
  }
}

void WorkerClient::died(std::size_t index, const std::string& how,
                        std::vector<WorkerEvent>& events) {
  const Request request = sent_[index];
  PooledWorker& worker = *request.worker;
  const bool started = pool_.ready(worker);
  const bool for_nobody = pool_.owes(worker);
  const std::uint64_t row = worker.memory.results[request.slot].preface().row.load();
  sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(index));
  pool_.stop_process(worker, false);
  pool_.release(worker, false);
  if (!started && ++pool_.start_deaths_ >= kStartDeathsMax)
    throw ResourceError(fmt::format("{}: a worker process {} while it started, {} times in a row",
                                    pool_.options_.title, how, kStartDeathsMax),
                        {},
                        "its words are on stderr; leave out workers= to run the function in "
                        "threads");
  events.emplace_back(WorkerDeath{
      request.block, how, request.sent ? row % std::max<std::size_t>(1, request.block.rows) : 0,
      started && !for_nobody});
}

void WorkerClient::cannot_start(PooledWorker& worker, const Message& message) {
  SharedMemory& results = worker.memory.results[0];
  results.look_again(message.bytes);
  WireReader from(results, message.bytes);
  const std::string why = from.text();
  pool_.stop_process(worker, true);
  throw ConfigError(
      fmt::format("{}: the function cannot be made in a worker process: {}", pool_.options_.title,
                  why),
      {},
      "define it in a module that can be imported there, with all that it uses; or leave out "
      "workers=, and it runs in threads");
}

}  // namespace penstock::python
