#include "worker_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "penstock/error.h"

namespace penstock::python {

void ScheduledWorker::expect(State state, std::string_view change) const {
  if (state_ == state) return;
  throw InternalError(
      fmt::format("a worker in state {} cannot {}", static_cast<int>(state_), change));
}

bool ScheduledWorker::takes_another() const {
  // Requests that were taken back still fill the socket, which must have room for one more.
  constexpr std::uint64_t kUnreadMax = 64;
  return state_ == State::busy && process_ == Process::ready && owes_ == 0 &&
         !being_read_[1 - slot_] && number_ - heard_ < kUnreadMax;
}

bool ScheduledWorker::is_next(std::uint64_t number) const {
  return (state_ == State::next_reserved || state_ == State::next_sent) && next_number_ == number;
}

bool ScheduledWorker::overdue(Nanoseconds now, Nanoseconds patience) const {
  return owes_ > 0 && now - owes_since_ > patience;
}

void ScheduledWorker::claim(Ticket owner) {
  expect(State::idle, "be claimed");
  state_ = State::claimed;
  owner_ = owner;
}

std::uint64_t ScheduledWorker::begin(std::uint64_t slot) {
  expect(State::claimed, "begin a request");
  state_ = State::busy;
  slot_ = slot;
  return ++number_;
}

std::uint64_t ScheduledWorker::reserve_next(Ticket heir) {
  expect(State::busy, "take another request");
  state_ = State::next_reserved;
  heir_ = heir;
  next_number_ = ++number_;
  return next_number_;
}

void ScheduledWorker::send_next() {
  expect(State::next_reserved, "be sent the next request");
  state_ = State::next_sent;
}

void ScheduledWorker::take_back_next() {
  if (state_ != State::next_reserved) expect(State::next_sent, "give back the next request");
  state_ = State::busy;
  heir_ = 0;
}

void ScheduledWorker::abandon_next() {
  expect(State::next_sent, "have its next request abandoned");
  state_ = State::next_abandoned;
  heir_ = 0;
}

Ticket ScheduledWorker::release(bool unanswered, Nanoseconds now) {
  if (state_ == State::idle) expect(State::claimed, "be released");
  const bool running = process_ != Process::none;
  if (running && (unanswered || state_ == State::next_abandoned)) {
    owes_ += (unanswered ? 1 : 0) + (state_ == State::next_abandoned ? 1 : 0);
    owes_since_ = now;
  }
  if (state_ == State::next_reserved || state_ == State::next_sent) {
    state_ = state_ == State::next_sent && running ? State::busy : State::claimed;
    slot_ = 1 - slot_;
  } else {
    state_ = State::idle;
  }
  owner_ = std::exchange(heir_, 0);
  return owner_;
}

void ScheduledWorker::process_started() {
  expect(State::claimed, "have its process started");
  process_ = Process::starting;
  heard_ = number_;
}

void ScheduledWorker::process_ready() {
  process_ = Process::ready;
}

void ScheduledWorker::process_stopped() {
  process_ = Process::none;
  owes_ = 0;
  if (state_ == State::busy) state_ = State::claimed;
}

void ScheduledWorker::heard(std::uint64_t number) {
  heard_ = std::max(heard_, number);
}

void ScheduledWorker::heard_owed_answer() {
  if (owes_ > 0) --owes_;
}

std::optional<std::uint64_t> ScheduledWorker::free_slot() const {
  if (!being_read_[0]) return 0;
  if (!being_read_[1]) return 1;
  return std::nullopt;
}

void WorkerSchedule::add_workers(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) idle_.push_back(workers_.size() + i);
  workers_.resize(workers_.size() + count);
}

void WorkerSchedule::remove_workers() {
  workers_.clear();
  idle_.clear();
}

Ticket WorkerSchedule::enter() {
  wanting_.insert(++last_ticket_);
  return last_ticket_;
}

bool WorkerSchedule::older_wants_place(Ticket call) const {
  return !wanting_.empty() && *wanting_.begin() < call;
}

std::optional<WorkerPlace> WorkerSchedule::place_for(Ticket call) {
  if (older_wants_place(call)) return std::nullopt;
  if (!idle_.empty()) {
    // A worker that owes an answer must give it first.
    auto best =
        std::ranges::find_if(idle_, [&](std::size_t index) { return workers_[index].owes() == 0; });
    if (best == idle_.end()) best = idle_.begin();
    const std::size_t index = *best;
    idle_.erase(best);
    workers_[index].claim(call);
    return WorkerPlace{index};
  }
  const auto free = std::ranges::find_if(
      workers_, [](const ScheduledWorker& worker) { return worker.takes_another(); });
  if (free == workers_.end()) return std::nullopt;
  const std::uint64_t number = free->reserve_next(call);
  return WorkerPlace{static_cast<std::size_t>(free - workers_.begin()), true, number,
                     1 - free->slot()};
}

Ticket WorkerSchedule::release(std::size_t index, bool unanswered, Nanoseconds now) {
  const Ticket owner = workers_[index].release(unanswered, now);
  if (owner == 0) idle_.insert(idle_.begin(), index);
  return owner;
}

std::span<const Ticket> WorkerSchedule::to_wake() {
  to_wake_.clear();
  if (!wanting_.empty()) {
    to_wake_.push_back(*wanting_.begin());
  } else {
    for (const ScheduledWorker& worker : workers_)
      if (worker.heir() != 0) to_wake_.push_back(worker.heir());
  }
  return to_wake_;
}

}  // namespace penstock::python
