#pragma once
// Worker processes for a user's function. They are spawned, never forked; inputs and results are in
// memory shared by descriptor. A worker that dies is started again and its block computed once
// more, which gives the same bytes; three deaths on one block name the sample. Nothing here needs
// Python: what does is behind WorkerHost.
//
// In layers: ScheduledWorker (worker_schedule.h) is the state of a worker. WorkerPool holds the
// workers and the mutex. WorkerClient (worker_client.h) is one call's requests: submit, wait,
// withdraw. WorkerCall (worker_call.cc) cuts a job into blocks and takes their results.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "penstock/clock.h"
#include "penstock/result.h"
#include "trace/activity.h"
#include "wire.h"
#include "worker_process.h"
#include "worker_schedule.h"

namespace penstock::python {

/// Rows that go to workers and come back, in blocks that the pool chooses.
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
  /// Takes the results of `count` rows from `first` on.
  virtual Result<void> read(WireReader& from, std::size_t first, std::size_t count) = 0;
};

/// What a pool needs from the interpreter that it runs in. Thread-safe.
class WorkerHost {
 public:
  virtual ~WorkerHost() = default;
  /// Throws when the process has a signal to handle (Ctrl-C).
  virtual void check_signals() = 0;
  /// Throws the exception that a worker sent.
  virtual void rethrow(const std::string& sent) = 0;
  /// Warns that the function `title` draws from the global generators.
  virtual void warn_of_global_use(const std::string& title) = 0;
  /// True in a child that was forked while the pool was in use: the workers are the parent's.
  virtual bool forked() = 0;
};

struct WorkerPoolOptions {
  std::string title;  // for errors
  unsigned workers = 1;
  /// Makes so many processes, which are not started.
  std::function<std::vector<std::unique_ptr<WorkerProcess>>(unsigned)> make_processes;
  WorkerHost* host = nullptr;
  Clock* clock = &Clock::real();
};

/// One worker: its process and the memory shared with it. Its state is in the pool's schedule.
struct PooledWorker {
  std::size_t index = 0;
  std::unique_ptr<WorkerProcess> process;
  WorkerMemory memory;
};

/// The worker processes of one function. They start with the first call, and end when the last
/// lease is given back, or with the pool. Thread-safe.
class WorkerPool {
 public:
  explicit WorkerPool(WorkerPoolOptions options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  [[nodiscard]] unsigned workers() const { return options_.workers; }
  /// Computes all rows of `job`, several blocks at once; blocks until that is done. A failure is
  /// that of the first row that failed, and the rows before it are computed; its cause is what the
  /// function raised. `activity`, if any, is told the sample and may cancel the call. Throws
  /// ConfigError when a worker cannot load the function, ResourceError when no worker starts.
  Result<void> run(WorkerJob& job, trace::Activity* activity = nullptr);

  void lease();
  void give_back();
  /// Ends the processes, unless somebody else has a lease, too; the next call starts them.
  void rest();
  /// Ends all processes of all pools, for good: the interpreter ends.
  static void end_all();
  /// Process ids, for tests and reports.
  [[nodiscard]] std::vector<int> process_ids() const;

 private:
  friend class WorkerClient;
  friend class WorkerCall;
  friend class ResultsLease;

  static bool ended_for_good();
  void end();

  // For calls.
  /// `bell` is written to when the call can use a change.
  Ticket enter(int bell);
  void leave(Ticket call);
  void want_place(Ticket call);
  void want_no_place(Ticket call);
  struct Place {
    PooledWorker* worker = nullptr;
    bool follows = false;
    std::uint64_t number = 0;
    std::uint64_t slot = 0;
  };
  /// See WorkerSchedule::place_for; starts the pool.
  std::optional<Place> place_for(Ticket call);
  /// Idle workers that no older call waits for.
  [[nodiscard]] std::size_t idle_workers_for(Ticket call) const;

  // For the owner of a worker.
  void start_process(PooledWorker& worker);
  void stop_process(PooledWorker& worker, bool kindly);
  /// Blocks while both slots are being read.
  std::uint64_t free_slot(const PooledWorker& worker);
  /// Sends the owner's request, whose inputs are in `message.slot`; returns its number.
  std::uint64_t send(PooledWorker& worker, Message message);
  void release(PooledWorker& worker, bool unanswered);
  void heard(const PooledWorker& worker, const Message& message);
  /// Returns true when nothing is owed any more.
  bool heard_owed_answer(const PooledWorker& worker);
  [[nodiscard]] bool overdue(const PooledWorker& worker) const;
  [[nodiscard]] bool owes(const PooledWorker& worker) const;
  [[nodiscard]] bool ready(const PooledWorker& worker) const;

  // For the heir of a worker.
  enum class Next : std::uint8_t {
    waits,  // behind the owner's request
    sent,   // the call owns the worker now, and the process has its request
    unsent  // the call owns the worker now, and must send its request (again)
  };
  [[nodiscard]] Next next(const PooledWorker& worker, std::uint64_t number) const;
  /// Sends the request to follow the owner's. False when the call owns the worker meanwhile.
  bool send_next(PooledWorker& worker, const Message& message);
  /// Gives up a request that waits. False when the process has begun it, which goes on.
  bool take_back(PooledWorker& worker, std::uint64_t number);
  /// As `take_back`; if the process has begun the request, its answer will be dropped. False when
  /// the request does not wait any more.
  bool withdraw_next(PooledWorker& worker, std::uint64_t number);

  static void post(PooledWorker& worker, const Message& message);
  bool take_back_unbegun(PooledWorker& worker) PENSTOCK_REQUIRES(mutex_);
  void set_being_read(const PooledWorker& worker, std::uint64_t slot, bool being_read);
  void ring(Ticket call) PENSTOCK_REQUIRES(mutex_);
  void wake() PENSTOCK_REQUIRES(mutex_);

  const WorkerPoolOptions options_;
  std::atomic<bool> stopping_{false};
  std::atomic<double> row_ns_{0};  // measured, smoothed; 0 until then
  std::atomic<bool> warned_of_global_use_{false};
  std::atomic<unsigned> start_deaths_{0};  // since a process was ready

  mutable Mutex mutex_;
  Condition changed_;
  WorkerSchedule schedule_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<PooledWorker>> workers_ PENSTOCK_GUARDED_BY(mutex_);
  std::map<Ticket, int> bells_ PENSTOCK_GUARDED_BY(mutex_);  // of all calls
  unsigned leases_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

/// While it lives no request uses the slot whose results are being read.
class ResultsLease {
 public:
  ResultsLease(WorkerPool& pool, PooledWorker& worker, std::uint64_t slot);
  ~ResultsLease();
  ResultsLease(ResultsLease&& other) noexcept;
  ResultsLease& operator=(ResultsLease&&) = delete;
  [[nodiscard]] SharedMemory& memory() const { return worker_->memory.results[slot_]; }

 private:
  WorkerPool* pool_;
  PooledWorker* worker_;
  std::uint64_t slot_;
};

}  // namespace penstock::python
