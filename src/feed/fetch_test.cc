// Loaders of slow files: the same bytes, each file read once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/temp_folder_for_tests.h"
#include "base/thread.h"
#include "penstock/clock.h"
#include "penstock/io.h"
#include "penstock/penstock.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// The real files, with a clock that advances by `latency` for each. Some hang, some fail.
class FarIo final : public Io {
 public:
  FarIo(VirtualClock& clock, Nanoseconds latency) : clock_(clock), latency_(latency) {}

  Result<Bytes> read(const std::string& path, std::uint64_t offset, std::uint64_t length) override {
    return Io::real().read(path, offset, length);
  }
  Result<Bytes> read_whole(const std::string& path, const WholeFile& wanted) override {
    {
      Lock lock(mutex_);
      ++reads_[path];
      changed_.notify_all();
      ++inside_;
      changed_.notify_all();
      while (hanging_.contains(path) || all_hang_) changed_.wait(mutex_);
      --inside_;
      if (const auto found = failing_.find(path); found != failing_.end() && found->second-- > 0) {
        Failure failure{"EIO"};
        failure.kind = Failure::Kind::transient;
        return failure;
      }
    }
    if (latency_.count() > 0) clock_.advance(latency_);
    return Io::real().read_whole(path, wanted);
  }
  Result<std::string> read_text(const std::string& path, std::uint64_t bytes_max) override {
    return Io::real().read_text(path, bytes_max);
  }
  Result<std::vector<FolderEntry>> list(const std::string& folder) override {
    return Io::real().list(folder);
  }
  Result<FolderEntry> look(const std::string& path) override { return Io::real().look(path); }
  Result<std::string> real_path(const std::string& path) override {
    return Io::real().real_path(path);
  }
  Result<void> append(const std::string& path, const std::string& text) override {
    return Io::real().append(path, text);
  }
  Result<void> publish(const std::string& path, std::string_view content) override {
    return Io::real().publish(path, content);
  }

  void hang(const std::string& path) {
    Lock lock(mutex_);
    hanging_.insert(path);
  }
  void hang_all() {
    Lock lock(mutex_);
    all_hang_ = true;
  }
  /// Returns when `count` reads hang at the same time.
  void wait_for_inside(int count) {
    Lock lock(mutex_);
    while (inside_ < count) changed_.wait(mutex_);
  }
  int inside() {
    Lock lock(mutex_);
    return inside_;
  }
  void let_go() {
    Lock lock(mutex_);
    hanging_.clear();
    all_hang_ = false;
    changed_.notify_all();
  }
  void fail(const std::string& path, int times) {
    Lock lock(mutex_);
    failing_[path] = times;
  }
  void wait_for_read(const std::string& path) {
    Lock lock(mutex_);
    while (reads_[path] == 0) changed_.wait(mutex_);
  }
  std::map<std::string, int> take_reads() {
    Lock lock(mutex_);
    return std::exchange(reads_, {});
  }

 private:
  VirtualClock& clock_;
  const Nanoseconds latency_;
  Mutex mutex_;
  Condition changed_;
  std::map<std::string, int> reads_ PENSTOCK_GUARDED_BY(mutex_);
  std::set<std::string> hanging_ PENSTOCK_GUARDED_BY(mutex_);
  bool all_hang_ PENSTOCK_GUARDED_BY(mutex_) = false;
  int inside_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> failing_ PENSTOCK_GUARDED_BY(mutex_);
};

class FetchTest : public testing::Test {
 protected:
  static constexpr int kFiles = 150;
  FetchTest() {
    for (int i = 0; i < kFiles; ++i)
      folder_.write(fmt::format("{}/{}.png", i % 3, i), fmt::format("photo {}", i));
  }
  [[nodiscard]] Dataset data() const { return Dataset::image_folder(folder_.path()); }
  /// The rows of one epoch.
  static std::vector<std::string> rows_of(Loader& loader) {
    std::vector<std::string> rows;
    for (const Batch& batch : loader)
      for (std::size_t row = 0; row < batch.rows(); ++row)
        rows.emplace_back(batch.row(row)["image"].text());
    return rows;
  }

  TempFolder folder_;
  VirtualClock clock_;
  FarIo far_{clock_, std::chrono::milliseconds(3)};
  FarIo near_{clock_, Nanoseconds(0)};
};

TEST_F(FetchTest, SlowAndFastReadsGiveTheSameBytesAndEachFileIsReadOnce) {
  for (const Dataset& dataset :
       {data().shuffle({.seed = 1}).batch(8), data().shuffle({.seed = 2}).batch(1),
        data().skip(3).map([](const Sample& sample) { return sample; }).batch(40)}) {
    Loader near(dataset, {.threads = 0, .clock = &clock_, .io = &near_});
    Loader far(dataset, {.clock = &clock_, .io = &far_});
    for (int epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(rows_of(far), rows_of(near)) << epoch;
      far.stop();  // reads past the end of the epoch are complete, or will never start
      for (const auto& [file, reads] : far_.take_reads()) EXPECT_EQ(reads, 1) << file;
    }
  }
}

TEST_F(FetchTest, MoreReadsAreInFlightThanThereAreWorkers) {
  Loader far(data().batch(8), {.threads = 2, .clock = &clock_, .io = &far_});
  (void)rows_of(far);
  far_.hang_all();
  Thread consumer("consumer",
                  [&] { EXPECT_EQ(rows_of(far).size(), static_cast<std::size_t>(kFiles)); });
  far_.wait_for_inside(3);
  far_.let_go();
}

TEST_F(FetchTest, OnlyWorkersReadFromFastFiles) {
  Loader near(data().batch(8), {.threads = 2, .clock = &clock_, .io = &near_});
  (void)rows_of(near);
  near_.hang_all();
  Thread consumer("consumer", [&] { (void)rows_of(near); });
  near_.wait_for_inside(1);
  EXPECT_LE(near_.inside(), 2);
  near_.let_go();
}

TEST_F(FetchTest, ACacheReadsEachFileOnce) {
  Loader far(data().cache().shuffle({.seed = 1}).batch(8), {.clock = &clock_, .io = &far_});
  (void)rows_of(far);
  EXPECT_EQ(far_.take_reads().size(), static_cast<std::size_t>(kFiles));
  (void)rows_of(far);
  (void)rows_of(far);
  EXPECT_TRUE(far_.take_reads().empty());
}

TEST_F(FetchTest, OnlyLocalSharesAreRead) {
  LoaderOptions options{.shares = Shares{2, 1, 1}, .clock = &clock_, .io = &far_};
  Loader far(data().batch(10), options);
  (void)rows_of(far);
  EXPECT_EQ(far_.take_reads().size(), static_cast<std::size_t>(kFiles / 2));
}

TEST_F(FetchTest, ATransientErrorIsRetriedAndAPermanentOneFailsItsSample) {
  Loader far(data().batch(8), {.clock = &clock_, .io = &far_});
  (void)rows_of(far);
  const std::string file = folder_.path("1/100.png");
  far_.fail(file, 2);
  EXPECT_EQ(rows_of(far).size(), static_cast<std::size_t>(kFiles));
  far_.fail(file, 1000);
  try {
    (void)rows_of(far);
    FAIL() << "the error is permanent";
  } catch (const SampleError& error) {
    EXPECT_EQ(error.where().file, file);
  }
}

TEST_F(FetchTest, OnlyTheFailedFileIsSkipped) {
  const Dataset dataset = data().batch(8);
  folder_.write("2/50.png", "of another size");
  Loader far(dataset, {.on_error = OnError::skip, .clock = &clock_, .io = &far_});
  for (int epoch = 0; epoch < 3; ++epoch)
    EXPECT_EQ(rows_of(far).size(), static_cast<std::size_t>(kFiles - 1));
  EXPECT_EQ(far.ledger().entries().back().file, folder_.path("2/50.png"));
}

TEST_F(FetchTest, StopReturnsWhileAReadHangsAndTheLoaderStaysUsable) {
  std::vector<std::string> reports;
  Mutex mutex;
  const ReportSink before = set_report_sink([&](const std::string& text) {
    Lock lock(mutex);
    reports.push_back(text);
  });
  {
    Loader far(data().batch(8), {.clock = &clock_, .io = &far_});
    const std::vector<std::string> rows = rows_of(far);
    const auto place = std::ranges::find(rows, "photo 100") - rows.begin();
    (void)far_.take_reads();
    const std::string file = folder_.path("1/100.png");
    far_.hang(file);
    std::atomic<std::ptrdiff_t> received{0};
    std::atomic<bool> ended{false};
    Thread consumer("consumer", [&] {
      EXPECT_THROW(
          {
            while (auto batch = far.next()) received += static_cast<std::ptrdiff_t>(batch->rows());
          },
          CancelledError);
      ended = true;
    });
    far_.wait_for_read(file);
    while (received < place / 8 * 8) yield_thread();
    // A stop before the consumer waits for the step ends nothing.
    while (!ended) {
      far.stop();
      yield_thread();
    }
    consumer.join();
    far_.let_go();
    while (abandoned_threads().load() > 0) yield_thread();
    EXPECT_GT(rows_of(far).size(), 0U);
  }
  set_report_sink(before);
  Lock lock(mutex);
  ASSERT_FALSE(reports.empty());
  EXPECT_THAT(reports.front(), HasSubstr("1/100.png"));
}

}  // namespace
}  // namespace penstock
