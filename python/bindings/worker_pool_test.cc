#include "worker_pool.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>

#include "base/thread.h"
#include "trace/activity.h"
#include "worker_fake_for_tests.h"

namespace penstock::python {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

using Serve = std::function<bool(FakeWorker&, const Message&)>;

/// Answers until the parent hangs up, or `serve` says that the process dies.
FakeProcess::Body serving(Serve serve) {
  return [serve](FakeWorker& worker) {
    worker.say_ready();
    while (const auto request = worker.receive(-1)) {
      if (!worker.begin(*request)) continue;
      if (!serve(worker, *request)) return;
    }
  };
}

bool answer(FakeWorker& worker, const Message& request) {
  worker.answer(request);
  return true;
}

std::vector<std::uint64_t> numbers_from(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<std::uint64_t> doubled(std::vector<std::uint64_t> numbers) {
  for (std::uint64_t& number : numbers) number *= 2;
  return numbers;
}

FakeHost& host() {
  static FakeHost only;
  return only;
}

std::unique_ptr<WorkerPool> pool_of(unsigned workers, Serve serve) {
  WorkerPoolOptions options;
  options.title = "map(f)";
  options.workers = workers;
  options.host = &host();
  options.make_processes = [serve](unsigned count) {
    std::vector<std::unique_ptr<WorkerProcess>> processes;
    for (unsigned i = 0; i < count; ++i)
      processes.push_back(std::make_unique<FakeProcess>(serving(serve)));
    return processes;
  };
  return std::make_unique<WorkerPool>(options);
}

TEST(WorkerPoolTest, AllRowsOfAJobAreComputedInTheirPlaces) {
  const auto pool = pool_of(3, answer);
  EXPECT_TRUE(pool->process_ids().empty()) << "no process before the first call";
  for (const std::size_t rows : {0, 1, 2, 7, 100}) {
    NumbersJob job(numbers_from(5, rows));
    ASSERT_TRUE(pool->run(job));
    EXPECT_EQ(job.out, doubled(job.in));
  }
  EXPECT_FALSE(pool->process_ids().empty());
}

TEST(WorkerPoolTest, AJobThatIsNotDivisibleIsOneRequest) {
  std::atomic<int> requests{0};
  const auto pool = pool_of(3, [&](FakeWorker& worker, const Message& request) {
    ++requests;
    return answer(worker, request);
  });
  NumbersJob job(numbers_from(0, 50));
  job.divisible = false;
  ASSERT_TRUE(pool->run(job));
  EXPECT_EQ(job.out, doubled(job.in));
  EXPECT_EQ(requests, 1);
}

TEST(WorkerPoolTest, AFailureIsThatOfTheFirstRowThatRaisedAndRowsBeforeItAreComputed) {
  const auto pool = pool_of(2, [](FakeWorker& worker, const Message& request) {
    const auto numbers = worker.numbers_in(request);
    for (std::size_t row = 0; row < numbers.size(); ++row)
      if (numbers[row] >= 13) {
        worker.raise(request, row, fmt::format("{} is too many", numbers[row]));
        return true;
      }
    return answer(worker, request);
  });
  for (int i = 0; i < 20; ++i) {
    NumbersJob job(numbers_from(0, 40));
    const auto done = pool->run(job);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.failure().row, 13U);
    EXPECT_TRUE(done.failure().row_known);
    EXPECT_THAT(done.failure().message, HasSubstr("13 is too many"));
    const auto expected = doubled(job.in);
    for (std::size_t row = 0; row < 13; ++row) EXPECT_EQ(job.out[row], expected[row]);
  }
}

TEST(WorkerPoolTest, AProcessThatDiesIsStartedAgainAndItsBlockComputedAgain) {
  std::atomic<int> deaths{0};
  const auto pool = pool_of(2, [&](FakeWorker& worker, const Message& request) {
    if (worker.numbers_in(request).front() == 0 && deaths++ < 2) return false;
    return answer(worker, request);
  });
  NumbersJob job(numbers_from(0, 20));
  ASSERT_TRUE(pool->run(job));
  EXPECT_EQ(job.out, doubled(job.in));
  EXPECT_EQ(deaths, 3);
}

TEST(WorkerPoolTest, ThreeDeathsOnOneBlockNameTheRowAndTheRowsBeforeItAreComputed) {
  const auto pool = pool_of(2, [](FakeWorker& worker, const Message& request) {
    const auto numbers = worker.numbers_in(request);
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      worker.at_row(request, row);
      if (numbers[row] == 6) return false;
    }
    return answer(worker, request);
  });
  NumbersJob job(numbers_from(0, 12));
  const auto done = pool->run(job);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 6U);
  EXPECT_THAT(done.failure().message, HasSubstr("was killed by a test, 3 times on this sample"));
  const auto expected = doubled(job.in);
  for (std::size_t row = 0; row < 6; ++row) EXPECT_EQ(job.out[row], expected[row]);
}

TEST(WorkerPoolTest, CallsOfManyThreadsGetTheirOwnResultsWhileProcessesDie) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kCalls = 40;
  std::atomic<unsigned> requests{0};
  const auto pool = pool_of(3, [&](FakeWorker& worker, const Message& request) {
    // Every 50th request kills its process; no block meets three of them in a row.
    return ++requests % 50 != 0 && answer(worker, request);
  });
  std::vector<Thread> threads;
  std::atomic<unsigned> wrong{0};
  for (std::uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back("caller", [&, thread] {
      for (std::uint64_t call = 0; call < kCalls; ++call) {
        NumbersJob job(numbers_from((thread * kCalls + call) * 100, call % 17));
        if (!pool->run(job) || job.out != doubled(job.in)) ++wrong;
      }
    });
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(requests, 50U);
}

/// A worker that begins requests and does not answer until `go` is set.
class StuckWorkers {
 public:
  Serve serve() {
    return [this](FakeWorker& worker, const Message& request) {
      Lock lock(mutex_);
      ++begun_;
      changed_.notify_all();
      while (!go_) changed_.wait(mutex_);
      return answer(worker, request);
    };
  }
  void wait_until_begun() {
    Lock lock(mutex_);
    while (begun_ == 0) changed_.wait(mutex_);
  }
  void go() {
    Lock lock(mutex_);
    go_ = true;
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  Condition changed_;
  int begun_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool go_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

TEST(WorkerPoolTest, ACallThatIsCancelledReturnsWhileItsWorkersAreBusy) {
  StuckWorkers stuck;
  const auto pool = pool_of(2, stuck.serve());
  trace::Activity activity;
  NumbersJob job(numbers_from(0, 8));
  std::string message;
  Thread caller("caller", [&] {
    const auto done = pool->run(job, &activity);
    message = done ? "done" : done.failure().message;
  });
  stuck.wait_until_begun();
  activity.cancelled = true;
  caller.join();
  EXPECT_EQ(message, "the loader was stopped");
  stuck.go();
  NumbersJob next(numbers_from(100, 8));
  ASSERT_TRUE(pool->run(next)) << "the workers serve the next call";
  EXPECT_EQ(next.out, doubled(next.in));
}

TEST(WorkerPoolTest, RestEndsCallsAndProcessesAndTheNextCallStartsThemAgain) {
  StuckWorkers stuck;
  const auto pool = pool_of(1, stuck.serve());
  NumbersJob job(numbers_from(0, 8));
  std::string message;
  Thread caller("caller", [&] {
    const auto done = pool->run(job);
    message = done ? "done" : done.failure().message;
    stuck.go();  // a fake cannot be killed
  });
  stuck.wait_until_begun();
  pool->rest();
  caller.join();
  EXPECT_EQ(message, "the loader was stopped");
  EXPECT_TRUE(pool->process_ids().empty());
  ASSERT_TRUE(pool->run(job));
  EXPECT_EQ(job.out, doubled(job.in));
}

TEST(WorkerPoolTest, ProcessesLiveAsLongAsTheLastLease) {
  const auto pool = pool_of(2, answer);
  NumbersJob job(numbers_from(0, 8));
  pool->lease();
  pool->lease();
  ASSERT_TRUE(pool->run(job));
  EXPECT_THAT(pool->process_ids(), SizeIs(2));
  pool->rest();
  EXPECT_THAT(pool->process_ids(), SizeIs(2)) << "somebody else has a lease";
  pool->give_back();
  EXPECT_THAT(pool->process_ids(), SizeIs(2));
  pool->rest();
  EXPECT_THAT(pool->process_ids(), SizeIs(0));
  ASSERT_TRUE(pool->run(job));
  EXPECT_THAT(pool->process_ids(), SizeIs(2));
  pool->give_back();
  EXPECT_THAT(pool->process_ids(), SizeIs(0));
}

}  // namespace
}  // namespace penstock::python
