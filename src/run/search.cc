// tested in src/feed/select_test.cc
#include "run/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/cancel_scope.h"
#include "base/mutex.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/thread_stack.h"
#include "penstock/clock.h"
#include "run/stall.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {
namespace {

/// Computes all samples, some at a time on each thread of the pool.
class Search final : public Work {
 public:
  Search(StagePtr samples, SearchTask task)
      : samples_(std::move(samples)), task_(std::move(task)) {}

  bool run_one() override {
    const std::uint64_t first = next_.fetch_add(kSearchedAtOnce);
    if (first >= task_.size) return false;
    const std::uint64_t rows = std::min(kSearchedAtOnce, task_.size - first);
    Looking looking;
    {
      Lock lock(mutex_);
      if (stopped_) return false;
      looking_.push_back(&looking);
    }
    const CancelScope scope(looking.activity.cancelled);
    Result<void> done;
    std::exception_ptr broken;
    try {
      done = look(first, rows, looking.activity);
    } catch (...) {
      broken = std::current_exception();
    }
    Lock lock(mutex_);
    std::erase(looking_, &looking);
    if (!done) {
      if (!failure_ || done.failure().row < failure_->row) failure_ = std::move(done.failure());
    }
    if (broken && !broken_) broken_ = broken;
    if (!done || broken) next_ = task_.size;
    done_ += rows;
    if (is_over()) finished_.notify_all();
    return true;
  }

  /// Waits until all samples are examined. An exception from `while_waiting` ends the search.
  void run(const std::shared_ptr<Search>& self, const std::function<void()>& while_waiting) {
    const auto pool = Pool::shared();
    pool->attach(self, pool->threads(), {.while_waiting = while_waiting});
    try {
      // Inside a function of a loader: all other threads may be blocked in the same way.
      while (Pool::on_own_thread() && run_one()) {
      }
      wait(while_waiting);
    } catch (...) {
      give_up(*pool);
      throw;
    }
    pool->detach(*this);
    Lock lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
    if (failure_) failure_->raise();
  }

 private:
  struct Looking {  // a thread that examines samples
    trace::Activity activity;
    ThreadId thread = this_thread_id();
  };

  /// Of several failures the one of the first sample is reported, so all active threads must
  /// finish.
  [[nodiscard]] bool is_over() const PENSTOCK_REQUIRES(mutex_) {
    return looking_.empty() && (done_ == task_.size || failure_ || broken_);
  }

  void wait(const std::function<void()>& while_waiting) {
    Nanoseconds report_after = std::chrono::seconds(30);
    const Nanoseconds began = Clock::real().now();
    while (true) {
      if (while_waiting) while_waiting();
      if (CancelScope::cancelled()) throw CancelledError(task_.word + ": the loader was stopped");
      const Nanoseconds waited = Clock::real().now() - began;
      const bool late = waited >= report_after;
      std::vector<ThreadLine> lines;
      std::uint64_t done = 0;
      {
        Lock lock(mutex_);
        if (is_over()) return;
        if (!late) finished_.wait_for(mutex_, std::chrono::milliseconds(50));
        done = done_;
        for (const Looking* each : looking_)
          lines.push_back({fmt::format("in {}", each->activity.op()), each->thread});
      }
      if (!late) continue;
      report_after = 2 * waited;
      report(fmt::format("{}: looked at {} of {} samples in {:.0f} s{}", task_.word, done,
                         task_.size, std::chrono::duration<double>(waited).count(),
                         with_stacks(lines)));
    }
  }

  /// Afterwards no thread works on it, except threads that do not return from a function: those are
  /// abandoned.
  void give_up(Pool& pool) {
    next_ = task_.size;
    {
      Lock lock(mutex_);
      stopped_ = true;
      for (Looking* each : looking_) each->activity.cancelled = true;
    }
    constexpr auto kPatience = std::chrono::milliseconds(500);
    const unsigned stuck = pool.detach(*this, kPatience);
    if (stuck > 0) report(fmt::format("{}: {}", task_.word, abandoned_text(stuck)));
  }

  /// The row of a failure is the number of the sample.
  Result<void> look(std::uint64_t first, std::uint64_t rows, trace::Activity& activity) {
    const ScratchStock::Loan loan(scratch_);
    const Context context(loan.scratch(), direct_reader(), &activity);
    const Scratch::Frame frame(context.scratch);
    std::uint64_t* const numbers = context.scratch.array<std::uint64_t>(rows);
    std::size_t count = 0;
    for (std::uint64_t number = first; number < first + rows; ++number)
      if (!task_.done || !task_.done(number)) numbers[count++] = number;
    if (count == 0) return {};
    const ScratchBlock block(samples_->spec(), count, context.scratch);
    auto done = samples_->produce({{0, 0}, {numbers, count}}, block.view(), context);
    if (done) done = task_.visit({numbers, count}, block.view());
    if (done) return done;
    const std::uint64_t number = numbers[std::min(done.failure().row, count - 1)];
    done.failure() = at_sample(std::move(done.failure()), samples_->ids(), block.view());
    done.failure().row = number;
    return done;
  }

  const StagePtr samples_;
  const SearchTask task_;
  ScratchStock scratch_;
  std::atomic<std::uint64_t> next_{0};
  Mutex mutex_;
  Condition finished_;
  std::uint64_t done_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool stopped_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::vector<Looking*> looking_ PENSTOCK_GUARDED_BY(mutex_);
  std::optional<Failure> failure_ PENSTOCK_GUARDED_BY(mutex_);
  std::exception_ptr broken_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace

void search(StagePtr samples, SearchTask task, const std::function<void()>& while_waiting) {
  const auto found = std::make_shared<Search>(std::move(samples), std::move(task));
  found->run(found, while_waiting);
}

}  // namespace penstock
