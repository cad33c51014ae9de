#pragma once
// The threads of a strategy: one per replica, the first being the caller's. They are started with
// the first run, wait between runs, and meet inside one through `meet`.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "penstock/strategy.h"

namespace penstock {

class Team {
 public:
  struct Options {
    Clock* clock = nullptr;
    std::chrono::milliseconds stall_after = std::chrono::seconds(30);
    std::function<void()> while_waiting = {};  // called now and then by members that wait
  };
  Team(std::uint32_t size, const Options& options);
  /// Joins; call it while nobody is in `run`.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Calls `body(member)` for every member with `takes_part`, each in its own thread, member 0 in
  /// the caller's. Rethrows the first failure by time; what else failed goes to a report. Throws
  /// ConfigError when a run is under way. What `while_waiting` throws in the caller's thread ends
  /// the run: a member that has not returned half a second later is abandoned with `body`, which
  /// must own all that it touches, this team included.
  void run(const std::vector<bool>& takes_part, std::function<void(std::uint32_t)> body);

  using Combine = std::function<Tensor(std::span<const detail::Part>)>;
  /// Inside a body: waits for all who take part, and returns what `combine` makes of all parts in
  /// member order (those of absent members have no value). `word` must be the same for all. Throws
  /// CancelledError when another member has failed, and ConfigError when one has returned instead
  /// of coming.
  Tensor meet(std::uint32_t member, const std::string& word, const detail::Part& part,
              const Combine& combine);
  /// Inside a body: true when a member has failed.
  [[nodiscard]] bool cancelled() const;
  void stop();

 private:
  enum class Doing : std::uint8_t { absent, computing, waiting, returned };
  struct Member {
    Doing doing = Doing::absent;
    std::string word;  // of the meeting it waits in
    detail::Part part;
    std::exception_ptr further;  // what it threw after the first cause
  };

  /// One call of `run`; lives as long as the last thread that is inside.
  struct Run {
    explicit Run(std::function<void(std::uint32_t)> function) : body(std::move(function)) {}
    const std::function<void(std::uint32_t)> body;
    bool interrupted = false;  // by `while_waiting`; both guarded by the team's mutex
    bool abandoned = false;    // who is still inside has no part in the team any more
  };
  static thread_local const Run* run_here;  // that the calling thread is inside

  void start_threads();
  void thread_body(std::uint32_t member);
  /// False when the run was abandoned meanwhile.
  bool perform(std::uint32_t member, const std::shared_ptr<Run>& run);
  void await_others(Run& run) PENSTOCK_REQUIRES(mutex_);
  void abandon(Run& run) PENSTOCK_REQUIRES(mutex_);
  void fail(std::uint32_t member, std::exception_ptr cause) PENSTOCK_REQUIRES(mutex_);
  [[nodiscard]] std::exception_ptr absence() const PENSTOCK_REQUIRES(mutex_);
  void complete(std::uint32_t member, const Combine& combine) PENSTOCK_REQUIRES(mutex_);
  [[noreturn]] void throw_cancelled(std::uint32_t member, const std::string& word) const
      PENSTOCK_REQUIRES(mutex_);
  [[nodiscard]] std::vector<std::uint32_t> members(Doing doing) const PENSTOCK_REQUIRES(mutex_);
  template <typename Done>
  void wait(const char* who, Done done) PENSTOCK_REQUIRES(mutex_);
  void look_up() PENSTOCK_REQUIRES(mutex_);
  [[nodiscard]] std::string further_text() const PENSTOCK_REQUIRES(mutex_);

  const std::uint32_t size_;
  Clock& clock_;
  const std::chrono::nanoseconds stall_after_;
  const std::function<void()> while_waiting_;

  mutable Mutex mutex_;
  Condition changed_;
  bool stopping_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool busy_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::uint64_t runs_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<Run> current_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<Member> members_ PENSTOCK_GUARDED_BY(mutex_);
  std::uint32_t running_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::uint64_t meeting_ PENSTOCK_GUARDED_BY(mutex_) = 0;  // completed so far
  Tensor outcome_ PENSTOCK_GUARDED_BY(mutex_);
  std::exception_ptr first_ PENSTOCK_GUARDED_BY(mutex_);
  std::uint32_t first_member_ PENSTOCK_GUARDED_BY(mutex_) = 0;

  std::vector<std::unique_ptr<Thread>> threads_;  // touched by run's caller and stop only
};

}  // namespace penstock
