#pragma once
// A worker process as its parent sees it. The pool knows the interface only, so that tests can put
// a fake in its place.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "penstock/clock.h"
#include "wire.h"

namespace penstock::python {

/// How long something may take that should be quick.
inline constexpr Nanoseconds kPatience = std::chrono::milliseconds(500);

/// What a process and its parent share: two slots, each with inputs and results.
struct WorkerMemory {
  std::array<SharedMemory, 2> inputs;
  std::array<SharedMemory, 2> results;
};

/// One call at a time owns it. The owner alone may call these functions, except `send` and `id`,
/// which any thread may call.
class WorkerProcess {
 public:
  virtual ~WorkerProcess() = default;
  /// Starts a process where none runs. Throws ResourceError.
  virtual void start(const WorkerMemory& memory) = 0;
  /// Does nothing when the process is gone, which `receive` and `ended` report.
  virtual void send(const Message& message) = 0;
  /// Does not wait.
  virtual Received receive(Message& message) = 0;
  /// Readable when there is something to receive; -1 where no process runs.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// How it ended; nothing while it runs.
  virtual std::optional<std::string> ended() = 0;
  /// Closes the connection, after which a process that waits for a request ends by itself. With
  /// `kill` it ends at once. Does not wait.
  virtual void hang_up(bool kill) = 0;
  /// Ends it and waits for that; one that is `kindly` asked has a moment for it.
  virtual void stop(bool kindly) = 0;
  /// The process id, or -1.
  [[nodiscard]] virtual int id() const = 0;
};

/// How worker processes are started.
struct WorkerProgram {
  std::vector<std::string> command;  // starts a worker, which finds its socket at descriptor 3
  std::string setup;                 // what it receives first, the function included
  std::string title;                 // for errors
};

/// A process that is spawned, never forked.
class SpawnedProcess final : public WorkerProcess {
 public:
  /// `setup` holds what the process receives first.
  SpawnedProcess(std::shared_ptr<const WorkerProgram> program,
                 std::shared_ptr<const SharedMemory> setup);
  ~SpawnedProcess() override;
  SpawnedProcess(const SpawnedProcess&) = delete;
  SpawnedProcess& operator=(const SpawnedProcess&) = delete;

  void start(const WorkerMemory& memory) override;
  void send(const Message& message) override;
  Received receive(Message& message) override;
  [[nodiscard]] int descriptor() const override;
  std::optional<std::string> ended() override;
  void hang_up(bool kill) override;
  void stop(bool kindly) override;
  [[nodiscard]] int id() const override { return pid_; }

 private:
  /// Returns the process id; `socket` becomes the worker's end.
  [[nodiscard]] pid_t spawn(int socket) const;

  const std::shared_ptr<const WorkerProgram> program_;
  const std::shared_ptr<const SharedMemory> setup_;
  std::atomic<pid_t> pid_{-1};
  mutable Mutex mutex_;
  int socket_ PENSTOCK_GUARDED_BY(mutex_) = -1;
};

/// `count` processes of `program`, which are not started yet.
std::vector<std::unique_ptr<WorkerProcess>> spawned_processes(
    const std::shared_ptr<const WorkerProgram>& program, unsigned count);

}  // namespace penstock::python
