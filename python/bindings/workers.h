#pragma once
// Worker processes for a user's function. They are spawned, never forked; what they are given and
// what they make lies in memory shared by descriptor. A worker that dies is started again and its
// block computed once more, which gives the same bytes; three deaths on one block name the sample.
// Nobody here holds the interpreter while waiting.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "penstock/dataset.h"
#include "wire.h"

namespace penstock::python {

struct WorkerProcess;

/// Rows that go to workers and come back, in blocks of the team's choice.
class WorkerJob {
 public:
  virtual ~WorkerJob() = default;
  Word word = Word::samples;
  std::size_t rows = 0;
  bool random = false;
  bool divisible = true;  // false: all rows are one block
  /// Where that is known.
  [[nodiscard]] virtual std::optional<std::uint64_t> sample_id(std::size_t row) const = 0;
  virtual void write(WireWriter& to, std::size_t first, std::size_t count) const = 0;
  /// Takes what was made of `count` rows from `first` on.
  virtual Result<void> read(WireReader& from, std::size_t first, std::size_t count) = 0;
};

/// What a team is made of; the same for all of its processes.
struct TeamSetup {
  std::vector<std::string> command;  // that starts a worker, which finds its socket at descriptor 3
  std::string setup;                 // what it is told first, the function included
  std::string title;                 // for errors
  unsigned workers = 1;
};

/// The worker processes of one function. They start with the first call, and end when the last
/// lease is given back, or with the team. Thread-safe.
class Team {
 public:
  explicit Team(TeamSetup setup);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] unsigned workers() const { return setup_.workers; }
  /// Has all rows of `job` worked on, several blocks at once. A failure is that of the first row
  /// that failed, and the rows before it are made; what the function raised is its cause. Throws
  /// ConfigError when the function cannot be made in a worker, ResourceError when none starts.
  Result<void> run(WorkerJob& job);

  void lease();
  void give_back();
  /// Ends the processes, if nobody but the one who asks has a lease; the next call starts them.
  void rest();
  /// Ends all processes of all teams, for good: the interpreter ends.
  static void end_all();
  static bool ended_for_good();
  /// Process ids, for tests and reports.
  [[nodiscard]] std::vector<int> process_ids() const;

 private:
  using Worker = WorkerProcess;
  struct Flight;
  class Round;
  /// A place for one request: the worker is idle, or this one follows that which it is at.
  struct Seat {
    Worker* worker = nullptr;
    bool queued = false;
    std::uint64_t number = 0;  // of a queued request
    std::uint64_t slot = 0;
  };

  void start() PENSTOCK_REQUIRES(mutex_);
  void end();
  // By the owner of the worker
  void spawn(Worker& worker);
  void end_process(Worker& worker, bool kindly);
  void release(Worker& worker);

  /// Tickets say who came first: steps are worked on oldest first.
  std::uint64_t enter(int bell);
  void leave(std::uint64_t ticket);
  void wants_more(std::uint64_t ticket);
  void wants_no_more(std::uint64_t ticket);
  /// A seat for whoever wants one longest.
  std::optional<Seat> acquire(std::uint64_t ticket);
  /// True when the heir's request was taken back, which the worker has not begun; with the mutex.
  static bool take_back(Worker& worker, std::uint64_t number);
  void ring(std::uint64_t ticket) PENSTOCK_REQUIRES(mutex_);
  /// Tells those who can make use of a change: who wants a seat longest, or who has a worse one.
  void tell_next() PENSTOCK_REQUIRES(mutex_);

  const TeamSetup setup_;
  std::atomic<bool> stopping_{false};
  std::atomic<double> row_ns_{0};  // measured, smoothed; 0 until then
  std::atomic<bool> told_{false};  // that the function draws from the global generators
  std::atomic<unsigned> start_deaths_{0};

  mutable Mutex mutex_;
  Condition changed_;
  std::unique_ptr<SharedMemory> setup_memory_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Worker>> all_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<Worker*> idle_ PENSTOCK_GUARDED_BY(mutex_);
  unsigned leases_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_ticket_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, int> bells_ PENSTOCK_GUARDED_BY(mutex_);  // of all rounds, by ticket
  std::set<std::uint64_t> wanting_ PENSTOCK_GUARDED_BY(mutex_);     // a seat; tickets
};

/// Keeps the processes of all functions of a dataset until it is destroyed.
class TeamLeases {
 public:
  explicit TeamLeases(const Dataset& dataset);
  ~TeamLeases();
  TeamLeases(const TeamLeases&) = delete;
  TeamLeases& operator=(const TeamLeases&) = delete;
  void rest() const;
  [[nodiscard]] std::vector<int> process_ids() const;

 private:
  std::vector<std::shared_ptr<Team>> teams_;
};

/// While it lives, the calling thread calls functions itself instead of asking workers.
class InThisProcess {
 public:
  explicit InThisProcess(bool so = true);
  ~InThisProcess();
  InThisProcess(const InThisProcess&) = delete;
  InThisProcess& operator=(const InThisProcess&) = delete;
  static bool now();

 private:
  bool before_;
};

/// The exception that a worker sent, as the cause of a failure.
[[noreturn]] void throw_sent(const std::string& sent);

}  // namespace penstock::python
