#pragma once
// The threads of a strategy: one per replica, the first being the caller's. They start with the
// first run, wait between runs, and synchronize inside a run through `meet`.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "penstock/clock.h"
#include "penstock/strategy.h"

namespace penstock {

class Team {
 public:
  struct Options {
    Clock* clock = nullptr;
    std::chrono::milliseconds stall_after = std::chrono::seconds(30);
    std::function<void()> while_waiting = {};  // called repeatedly by members that wait
  };
  Team(std::uint32_t size, const Options& options);
  /// Joins the threads; call it while no thread is in `run`.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Calls `body(member)` for every member with `takes_part`, each in its own thread, member 0 in
  /// the caller's. Rethrows the first failure by time; the others go to a report. Throws
  /// ConfigError while another run is in progress. An exception from `while_waiting` in the
  /// caller's thread ends the run: a member that has not returned half a second later is abandoned
  /// with `body`, which must own everything it touches, including this team.
  void run(const std::vector<bool>& takes_part, std::function<void(std::uint32_t)> body);

  using Combine = std::function<Tensor(std::span<const detail::Part>)>;
  /// Inside a body: waits for all members that take part, and returns the result of `combine` for
  /// all parts in member order (absent members have no value). `word` must be the same for all.
  /// Throws CancelledError if another member has failed, and ConfigError if one has returned
  /// without calling it.
  Tensor meet(std::uint32_t member, const std::string& word, const detail::Part& part,
              const Combine& combine);
  /// Inside a body: true if a member has failed.
  [[nodiscard]] bool cancelled() const;
  void stop();

 private:
  enum class Doing : std::uint8_t { absent, computing, waiting, returned };
  struct Member {
    Doing doing = Doing::absent;
    std::string word;  // of the collective it waits in
    detail::Part part;
    std::exception_ptr further;  // its exception after the first cause
  };

  /// One call of `run`; lives as long as the last thread inside.
  struct Run {
    explicit Run(std::function<void(std::uint32_t)> function) : body(std::move(function)) {}
    const std::function<void(std::uint32_t)> body;
    bool interrupted = false;  // by `while_waiting`; both guarded by the team's mutex
    bool abandoned = false;    // threads still inside no longer belong to the team
  };
  static thread_local const Run* run_here;  // the run that the calling thread is inside

  void start_threads();
  void thread_body(std::uint32_t member);
  /// False if the run was abandoned meanwhile.
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

  std::vector<std::unique_ptr<Thread>> threads_;  // accessed only by the caller of run and by stop
};

}  // namespace penstock
