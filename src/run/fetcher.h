#pragma once
// Reads ahead of the workers. While the file system answers from memory, workers read for
// themselves, which is cheapest, and this class only measures. When reads are slow, the reads of
// opened steps are queued, and separate threads, as many as the latency justifies, execute them.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/pool.h"
#include "penstock/clock.h"
#include "penstock/io.h"
#include "run/budget.h"
#include "source/reader.h"
#include "trace/recorder.h"

namespace penstock {

/// Measures how long reads take beyond copying their bytes, and how many threads that justifies.
/// Outlives the passes of a loader. Thread-safe.
class ReadPace {
 public:
  static constexpr unsigned kThreadsMax = Pool::kReadingThreadsMax;
  void measured(Nanoseconds took, std::uint64_t bytes);
  /// 0 while reads take well under 100 us.
  [[nodiscard]] unsigned threads() const { return threads_.load(std::memory_order_relaxed); }
  /// Smoothed, in nanoseconds.
  [[nodiscard]] double latency() const;

 private:
  std::atomic<unsigned> threads_{0};
  mutable Mutex mutex_;
  double latency_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

/// Thread-safe. Each queued read runs once: on a fetcher thread, or on the worker that needs it
/// before a fetcher thread starts it.
class Fetcher final : public Reader {
 public:
  struct Options {
    Io* io = nullptr;
    Clock* clock = nullptr;
    std::shared_ptr<ReadPace> pace;
    ByteBudget* budget = nullptr;
    std::uint64_t bytes_max = UINT64_MAX;  // of completed reads that no worker has taken
    std::shared_ptr<trace::Recorder> recorder = {};
  };
  explicit Fetcher(Options options);
  ~Fetcher() override;
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  /// True if reads should be queued.
  [[nodiscard]] bool ahead() const { return options_.pace->threads() > 0; }
  /// Rows that should be in flight to keep the threads busy.
  [[nodiscard]] std::uint64_t rows_ahead() const { return 2ULL * options_.pace->threads(); }
  /// Starts the reads of a step, unless the byte budget is exhausted: workers then read for
  /// themselves.
  void queue(std::uint64_t step, std::vector<PlannedRead> reads);
  /// Discards the remaining reads of the step.
  void forget(std::uint64_t step);

  /// Returns fetched bytes, or waits for a read in flight; reads by itself if no thread has
  /// started. A failure is returned once: the next call reads again.
  Result<Bytes> get(const Read& read, const ReadKey& key) override;
  Result<void> read_at(const FileHandle& file, std::uint64_t offset, std::span<std::byte> out,
                       const ReadKey& key) override;
  [[nodiscard]] bool by_row() const override { return queued_.load(std::memory_order_relaxed); }
  Result<Bytes> get_file(const std::string& path, std::uint64_t bytes_max) override;

  /// Wakes all waiting threads; every later call fails.
  void cancel();
  /// Like `cancel`, and ends the threads. A thread still inside a read after `patience` is
  /// abandoned. Returns the files that abandoned threads were reading.
  std::vector<std::string> stop(std::chrono::nanoseconds patience);

  /// The current number of threads.
  [[nodiscard]] unsigned threads() const;
  /// Bytes taken from the budget.
  [[nodiscard]] std::uint64_t bytes_held() const;

 private:
  struct Ticket;
  struct Slot;
  class Shared;
  static void serve(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Slot>& slot);
  Result<Bytes> read_here(const Read& read);
  /// Records a read of the calling thread.
  void note_read(Nanoseconds began, Nanoseconds ended, std::uint64_t bytes) const;

  const Options options_;
  std::atomic<bool> queued_{false};  // at least once
  std::atomic<std::uint32_t> direct_reads_{0};
  const std::shared_ptr<Shared> shared_;  // may be outlived by an abandoned thread
};

}  // namespace penstock
