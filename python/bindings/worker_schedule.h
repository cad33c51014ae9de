#pragma once
// Which worker gets which request. Decisions only: no lock, no process, no memory. The pool
// (worker_pool.h) calls it with its mutex held and carries out what was decided.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "penstock/clock.h"

namespace penstock::python {

/// Identifies a call. Smaller tickets are older calls, whose requests go first. 0: no call.
using Ticket = std::uint64_t;

/// The state of one worker, which several calls share.
///
/// The *owner* is the call that receives what the process sends. While the process is busy with the
/// owner's request another call, the *heir*, may send the request that follows, so that the process
/// never waits for us; the heir becomes the owner when the owner is done. A request uses one of two
/// slots: memory for its inputs and for its results.
///
///   idle            no call has the worker
///   claimed         a call has it and has sent nothing yet: the process starts, or answers what it
///                   owes, or the call is writing its inputs
///   busy            the process has the owner's request
///   next_reserved   busy, and the heir is writing its inputs
///   next_sent       busy, and the process has the heir's request, too
///   next_abandoned  busy, and the process has begun a request that nobody wants any more
///
///   idle           -claim->         claimed
///   claimed        -begin->         busy
///   busy           -reserve_next->  next_reserved
///   next_reserved  -send_next->     next_sent
///   next_reserved, next_sent  -take_back_next->  busy   (unless the process has begun it)
///   next_sent      -abandon_next->  next_abandoned
///   release, by the owner:
///     claimed, busy, next_abandoned ->  idle
///     next_reserved ->  claimed by the heir
///     next_sent     ->  busy for the heir; claimed by the heir if the process is gone
///   process_stopped, by the owner:
///     busy ->  claimed; the others stay as they are, until the owner releases the worker
///
/// Next to the state: a process *owes* an answer when its call has left. Owed answers come first
/// and are dropped.
class ScheduledWorker {
 public:
  enum class State : std::uint8_t { idle, claimed, busy, next_reserved, next_sent, next_abandoned };
  enum class Process : std::uint8_t { none, starting, ready };

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] Process process() const { return process_; }
  [[nodiscard]] Ticket owner() const { return owner_; }
  [[nodiscard]] Ticket heir() const { return heir_; }
  /// The slot of the owner's request.
  [[nodiscard]] std::uint64_t slot() const { return slot_; }
  /// The number of the heir's request.
  [[nodiscard]] std::uint64_t next_number() const { return next_number_; }
  [[nodiscard]] unsigned owes() const { return owes_; }
  /// True when a request can be sent to follow the one the process is busy with.
  [[nodiscard]] bool takes_another() const;
  /// True while request `number` waits behind the owner's.
  [[nodiscard]] bool is_next(std::uint64_t number) const;
  /// True when an answer has been owed for longer than `patience`: the function does not return.
  [[nodiscard]] bool overdue(Nanoseconds now, Nanoseconds patience) const;

  void claim(Ticket owner);
  /// Returns the number of the request, which the caller sends.
  std::uint64_t begin(std::uint64_t slot);
  /// Returns the number of the request, which will use the other slot.
  std::uint64_t reserve_next(Ticket heir);
  void send_next();
  void take_back_next();
  void abandon_next();
  /// The owner leaves; `unanswered` when its request was sent and not answered. Returns the new
  /// owner, or 0.
  Ticket release(bool unanswered, Nanoseconds now);

  void process_started();
  void process_ready();
  void process_stopped();
  /// Notes an answer to request `number`.
  void heard(std::uint64_t number);
  void heard_owed_answer();

  /// Results in `slot` are being read by a call that has released the worker.
  void set_being_read(std::uint64_t slot, bool being_read) { being_read_[slot] = being_read; }
  /// A slot for a worker that is not busy; nothing while both are being read.
  [[nodiscard]] std::optional<std::uint64_t> free_slot() const;

 private:
  void expect(State state, std::string_view change) const;

  State state_ = State::idle;
  Process process_ = Process::none;
  Ticket owner_ = 0;
  Ticket heir_ = 0;
  std::uint64_t slot_ = 0;
  std::uint64_t next_number_ = 0;  // of the heir's request
  std::uint64_t number_ = 0;       // of the last request
  std::uint64_t heard_ = 0;        // of the last answer
  unsigned owes_ = 0;
  Nanoseconds owes_since_{0};
  std::array<bool, 2> being_read_{};
};

/// A place for one request: with an idle worker, or behind the request of a busy one.
struct WorkerPlace {
  std::size_t worker = 0;
  bool follows = false;
  std::uint64_t number = 0;  // of a request that follows
  std::uint64_t slot = 0;    // of a request that follows
};

/// Shares the workers of a pool among calls, oldest call first.
class WorkerSchedule {
 public:
  /// Adds `count` idle workers, numbered from 0.
  void add_workers(std::size_t count);
  void remove_workers();
  [[nodiscard]] bool has_workers() const { return !workers_.empty(); }
  [[nodiscard]] std::size_t idle_workers() const { return idle_.size(); }
  [[nodiscard]] ScheduledWorker& worker(std::size_t index) { return workers_[index]; }
  [[nodiscard]] const ScheduledWorker& worker(std::size_t index) const { return workers_[index]; }

  /// A new call, which wants a place.
  Ticket enter();
  void leave(Ticket call) { wanting_.erase(call); }
  void want_place(Ticket call) { wanting_.insert(call); }
  void want_no_place(Ticket call) { wanting_.erase(call); }
  /// True when an older call wants a place.
  [[nodiscard]] bool older_wants_place(Ticket call) const;
  /// A place for `call`; nothing while an older call wants one or all workers are taken.
  std::optional<WorkerPlace> place_for(Ticket call);
  /// See ScheduledWorker::release.
  Ticket release(std::size_t index, bool unanswered, Nanoseconds now);

  /// The calls that can use a change: the oldest that wants a place or, when no call wants one,
  /// those whose request waits behind another. Valid until the next call of a member.
  [[nodiscard]] std::span<const Ticket> to_wake();

 private:
  std::vector<ScheduledWorker> workers_;
  std::vector<std::size_t> idle_;  // the one used last comes first: its caches are warm
  std::set<Ticket> wanting_;
  std::vector<Ticket> to_wake_;
  Ticket last_ticket_ = 0;
};

}  // namespace penstock::python
