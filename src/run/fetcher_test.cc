#include "run/fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "base/thread.h"

namespace penstock {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

/// Files whose bytes are their names. A read of a held file ends when the test releases it.
class HeldIo final : public Io {
 public:
  void hold(const std::string& path) {
    Lock lock(mutex_);
    held_.insert(path);
  }
  void release(const std::string& path) {
    Lock lock(mutex_);
    held_.erase(path);
    changed_.notify_all();
  }
  /// Returns after `count` reads of `path` have started.
  void wait_for_reads(const std::string& path, int count) {
    Lock lock(mutex_);
    while (reads_[path] < count) changed_.wait(mutex_);
  }
  int reads(const std::string& path) {
    Lock lock(mutex_);
    return reads_[path];
  }

  Result<Bytes> read(const std::string& path, std::uint64_t, std::uint64_t) override {
    return read_whole(path, {.bytes_max = UINT64_MAX});
  }
  Result<Bytes> read_whole(const std::string& path, const WholeFile&) override {
    Lock lock(mutex_);
    ++reads_[path];
    changed_.notify_all();
    while (held_.contains(path)) changed_.wait(mutex_);
    if (path.starts_with("bad")) return Failure{"cannot read " + path};
    if (path.starts_with("huge")) throw std::bad_alloc();
    Bytes bytes;
    for (const char letter : path) bytes.push_back(static_cast<std::byte>(letter));
    return bytes;
  }
  Result<std::string> read_text(const std::string&, std::uint64_t) override { return Failure{}; }
  Result<std::vector<FolderEntry>> list(const std::string&) override { return Failure{}; }
  Result<FolderEntry> look(const std::string&) override { return Failure{}; }
  Result<std::string> real_path(const std::string&) override { return Failure{}; }
  Result<void> append(const std::string&, const std::string&) override { return {}; }
  Result<void> publish(const std::string&, std::string_view) override { return {}; }

 private:
  Mutex mutex_;
  Condition changed_;
  std::set<std::string> held_ PENSTOCK_GUARDED_BY(mutex_);
  std::map<std::string, int> reads_ PENSTOCK_GUARDED_BY(mutex_);
};

std::string text_of(const Result<Bytes>& bytes) {
  if (!bytes) return "failed: " + bytes.failure().message;
  return {reinterpret_cast<const char*>((*bytes).data()), (*bytes).size()};
}

PlannedRead planned(std::uint64_t number, const std::string& path) {
  return {{nullptr, number}, {path, 0, 10, true}};
}

class FetcherTest : public testing::Test {
 protected:
  void make_slow() {
    for (int i = 0; i < 200; ++i) pace_->measured(milliseconds(10), 0);
  }
  std::string get(std::uint64_t number, const std::string& path) {
    return text_of(fetcher_.get({path, 0, 10, true}, {nullptr, number}));
  }

  HeldIo io_;
  VirtualClock clock_;
  ByteBudget budget_{1000};
  std::shared_ptr<ReadPace> pace_ = std::make_shared<ReadPace>();
  Fetcher fetcher_{{&io_, &clock_, pace_, &budget_, 500}};
};

TEST(ReadPaceTest, ReadsFromMemoryStartNoThreads) {
  ReadPace pace;
  for (int i = 0; i < 1000; ++i) pace.measured(microseconds(20), 0);
  EXPECT_EQ(pace.threads(), 0U);
  // The time to copy a large file is not latency.
  for (int i = 0; i < 1000; ++i) pace.measured(milliseconds(5), 10 << 20);
  EXPECT_EQ(pace.threads(), 0U);
}

TEST(ReadPaceTest, ASingleSlowReadChangesNothing) {
  ReadPace pace;
  for (int i = 0; i < 100; ++i) pace.measured(microseconds(20), 0);
  pace.measured(milliseconds(50), 0);
  EXPECT_EQ(pace.threads(), 0U);
}

TEST(ReadPaceTest, ThreadsGrowWithTheLatencyUpToTheLimitAndEndAgain) {
  ReadPace pace;
  for (int i = 0; i < 200; ++i) pace.measured(microseconds(200), 0);
  EXPECT_EQ(pace.threads(), 4U);
  for (int i = 0; i < 200; ++i) pace.measured(microseconds(80), 0);
  EXPECT_EQ(pace.threads(), 2U);
  for (int i = 0; i < 200; ++i) pace.measured(milliseconds(50), 0);
  EXPECT_EQ(pace.threads(), ReadPace::kThreadsMax);
  for (int i = 0; i < 200; ++i) pace.measured(microseconds(10), 0);
  EXPECT_EQ(pace.threads(), 0U);
}

TEST_F(FetcherTest, AReadThatBeginsAtTheSamePlaceButIsLongerIsNotReplacedByTheQueuedOne) {
  make_slow();
  fetcher_.queue(0, {{{nullptr, 1}, {"12345678", 0, 4}}});
  io_.wait_for_reads("12345678", 1);
  std::string out(8, ' ');
  const FileHandle file("12345678", 8, 0);
  ASSERT_TRUE(fetcher_.read_at(file, 0, std::as_writable_bytes(std::span(out)), {nullptr, 1}));
  EXPECT_EQ(out, "12345678");
  EXPECT_EQ(io_.reads("12345678"), 2);
}

TEST_F(FetcherTest, AReadThatIsNotQueuedIsDoneByTheCaller) {
  EXPECT_FALSE(fetcher_.ahead());
  EXPECT_EQ(get(0, "a"), "a");
  EXPECT_EQ(text_of(fetcher_.get_file("b", 1)), "b");
  EXPECT_EQ(fetcher_.threads(), 0U);
}

TEST_F(FetcherTest, ReadsThatTakeLongAreMeasuredByTheClock) {
  for (int i = 0; i < 20; ++i) {
    io_.hold("slow");
    Thread reader("reader", [&] { EXPECT_EQ(get(0, "slow"), "slow"); });
    io_.wait_for_reads("slow", i + 1);
    clock_.advance(milliseconds(2));
    io_.release("slow");
  }
  EXPECT_TRUE(fetcher_.ahead());
  EXPECT_GE(fetcher_.rows_ahead(), 4U);
}

TEST_F(FetcherTest, EveryQueuedReadIsDoneOnce) {
  make_slow();
  std::vector<PlannedRead> reads;
  for (std::uint64_t i = 0; i < 40; ++i) reads.push_back(planned(i, std::to_string(i)));
  fetcher_.queue(0, std::move(reads));
  EXPECT_GT(fetcher_.threads(), 0U);
  for (std::uint64_t i = 40; i-- > 0;) EXPECT_EQ(get(i, std::to_string(i)), std::to_string(i));
  for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(io_.reads(std::to_string(i)), 1) << i;
  EXPECT_EQ(budget_.used(), 0U);
}

TEST_F(FetcherTest, ARowThatIsQueuedTwiceIsReadTwice) {
  make_slow();
  fetcher_.queue(0, {planned(7, "a"), planned(7, "a")});
  EXPECT_EQ(get(7, "a"), "a");
  EXPECT_EQ(get(7, "a"), "a");
  EXPECT_EQ(io_.reads("a"), 2);
}

TEST_F(FetcherTest, AReadInFlightIsAwaited) {
  make_slow();
  io_.hold("a");
  fetcher_.queue(0, {planned(0, "a")});
  io_.wait_for_reads("a", 1);
  Thread worker("worker", [&] { EXPECT_EQ(get(0, "a"), "a"); });
  io_.release("a");
  worker.join();
  EXPECT_EQ(io_.reads("a"), 1);
}

TEST_F(FetcherTest, AReadThatHasNotStartedIsDoneOnceByTheWorker) {
  make_slow();
  // As many hanging reads as there may be threads.
  std::vector<PlannedRead> reads;
  for (unsigned i = 0; i < ReadPace::kThreadsMax; ++i) {
    io_.hold(std::to_string(i));
    reads.push_back(planned(i, std::to_string(i)));
  }
  reads.push_back(planned(100, "last"));
  fetcher_.queue(0, std::move(reads));
  for (unsigned i = 0; i < ReadPace::kThreadsMax; ++i) io_.wait_for_reads(std::to_string(i), 1);
  EXPECT_EQ(get(100, "last"), "last");
  for (unsigned i = 0; i < ReadPace::kThreadsMax; ++i) io_.release(std::to_string(i));
  EXPECT_TRUE(fetcher_.stop(hours(1)).empty());
  EXPECT_EQ(io_.reads("last"), 1);
}

TEST_F(FetcherTest, AFailureAffectsItsRowOnlyAndTheNextCallReadsAgain) {
  make_slow();
  fetcher_.queue(0, {planned(0, "a"), planned(1, "bad"), planned(2, "huge"), planned(3, "b")});
  EXPECT_EQ(get(0, "a"), "a");
  EXPECT_EQ(get(3, "b"), "b");
  EXPECT_EQ(get(1, "bad"), "failed: cannot read bad");
  EXPECT_EQ(io_.reads("bad"), 1);
  EXPECT_EQ(get(1, "bad"), "failed: cannot read bad");
  EXPECT_EQ(io_.reads("bad"), 2);
}

TEST_F(FetcherTest, RunningOutOfMemoryIsAFailureOfTheRow) {
  make_slow();
  io_.hold("huge");
  fetcher_.queue(0, {planned(2, "huge")});
  io_.wait_for_reads("huge", 1);
  io_.release("huge");
  EXPECT_THAT(get(2, "huge"), HasSubstr("failed: huge: "));
}

TEST_F(FetcherTest, IfNoThreadCanBeStartedTheWorkersRead) {
  make_slow();
  fault::arm("fetcher.thread", 1);
  fetcher_.queue(0, {planned(0, "a"), planned(1, "b")});
  fault::disarm_all();
  EXPECT_EQ(fetcher_.threads(), 0U);
  EXPECT_EQ(get(0, "a"), "a");
  EXPECT_EQ(get(1, "b"), "b");
  fetcher_.forget(0);
  EXPECT_EQ(fetcher_.bytes_held(), 0U);
  EXPECT_EQ(budget_.used(), 0U);
}

TEST_F(FetcherTest, BytesAreTakenFromTheBudgetAndReturned) {
  make_slow();
  fetcher_.queue(0, {planned(0, "a"), planned(1, "b")});
  fetcher_.queue(1, {planned(2, "c")});
  EXPECT_EQ(budget_.used(), 30U);
  EXPECT_EQ(fetcher_.bytes_held(), 30U);
  (void)get(0, "a");
  EXPECT_EQ(budget_.used(), 20U);
  fetcher_.forget(0);
  EXPECT_EQ(budget_.used(), 10U);
  fetcher_.forget(0);
  fetcher_.stop(hours(1));
  EXPECT_EQ(budget_.used(), 0U);
}

TEST_F(FetcherTest, NothingIsQueuedBeyondTheByteBudget) {
  make_slow();
  std::vector<PlannedRead> reads;
  for (std::uint64_t i = 0; i < 51; ++i) reads.push_back(planned(i, "a"));
  fetcher_.queue(0, std::move(reads));  // 510 bytes, the limit is 500
  EXPECT_EQ(budget_.used(), 0U);
  ASSERT_TRUE(budget_.take(995, false));
  fetcher_.queue(1, {planned(0, "b")});
  EXPECT_EQ(fetcher_.bytes_held(), 0U);
  EXPECT_EQ(get(0, "b"), "b");
}

TEST_F(FetcherTest, CancelWakesAWorkerThatWaits) {
  make_slow();
  io_.hold("a");
  fetcher_.queue(0, {planned(0, "a")});
  io_.wait_for_reads("a", 1);
  Thread worker("worker", [&] { EXPECT_THAT(get(0, "a"), HasSubstr("stopped")); });
  fetcher_.cancel();
  worker.join();
  EXPECT_THAT(get(5, "b"), HasSubstr("stopped"));
  fetcher_.queue(1, {planned(1, "c")});
  io_.release("a");
  EXPECT_TRUE(fetcher_.stop(hours(1)).empty());
  EXPECT_EQ(io_.reads("c"), 0);
}

TEST_F(FetcherTest, AHangingReadIsAbandonedAndReportedAndMayReturnLater) {
  const unsigned before = abandoned_threads().load();
  make_slow();
  io_.hold("a");
  fetcher_.queue(0, {planned(0, "a"), planned(1, "b")});
  io_.wait_for_reads("a", 1);
  EXPECT_THAT(fetcher_.stop(milliseconds(1)), ElementsAre("a"));
  EXPECT_EQ(abandoned_threads().load(), before + 1);
  EXPECT_EQ(fetcher_.threads(), 0U);
  EXPECT_EQ(budget_.used(), 0U);
  io_.release("a");
  while (abandoned_threads().load() > before) yield_thread();
  EXPECT_TRUE(fetcher_.stop(hours(1)).empty());
}

}  // namespace
}  // namespace penstock
