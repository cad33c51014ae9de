#pragma once
// Reads ahead of the workers. As long as the file system answers from memory a worker reads for
// itself, which is cheapest, and there is nothing here but a measurement. When answers take long,
// the reads of the steps that were opened are queued, and threads of their own, as many as the
// latency is worth, wait for them.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/pool.h"
#include "penstock/clock.h"
#include "penstock/io.h"
#include "run/budget.h"
#include "source/reader.h"

namespace penstock {

/// How long reads take beyond the copying of their bytes, and how many threads that is worth.
/// Outlives the passes of a loader. Thread-safe.
class ReadPace {
 public:
  static constexpr unsigned kThreadsMax = Pool::kReadingThreadsMax;
  void measured(Nanoseconds took, std::uint64_t bytes);
  /// 0 while reads are answered in well under 100 us.
  [[nodiscard]] unsigned threads() const { return threads_.load(std::memory_order_relaxed); }
  /// Smoothed, in nanoseconds.
  [[nodiscard]] double latency() const;

 private:
  std::atomic<unsigned> threads_{0};
  mutable Mutex mutex_;
  double latency_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

/// `queue`, `forget`, `get` and `stop` may be called from any thread. Each queued read is done
/// once: by a thread of its own, or by the worker that wants it before one of those began.
class Fetcher final : public Reader {
 public:
  struct Options {
    Io* io = nullptr;
    Clock* clock = nullptr;
    std::shared_ptr<ReadPace> pace;
    ByteBudget* budget = nullptr;
    std::uint64_t bytes_max = UINT64_MAX;  // of bytes read that nobody has taken
  };
  explicit Fetcher(Options options);
  ~Fetcher() override;
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  /// True when it is worth while to queue reads.
  [[nodiscard]] bool ahead() const { return options_.pace->threads() > 0; }
  /// Rows that should be on their way for the threads to be busy.
  [[nodiscard]] std::uint64_t rows_ahead() const { return 2ULL * options_.pace->threads(); }
  /// Begins the reads of a step, unless there is no room for their bytes: workers then read for
  /// themselves.
  void queue(std::uint64_t step, std::vector<PlannedRead> reads);
  /// Nobody will ask for what is left of the step.
  void forget(std::uint64_t step);

  /// What was fetched, or is being fetched; reads itself where nobody has begun to. A failure is
  /// given once: asked again, it reads again.
  Result<Bytes> get(const Read& read, const ReadKey& key) override;
  Result<Bytes> get_file(const std::string& path, std::uint64_t bytes_max) override;

  /// Wakes whoever waits; from now on there are only failures.
  void cancel();
  /// As `cancel`, and ends the threads. One that is still inside a read after `patience` is left
  /// behind. Returns what those were reading.
  std::vector<std::string> stop(std::chrono::nanoseconds patience);

  /// Threads that there are now.
  [[nodiscard]] unsigned threads() const;
  /// Bytes that were taken from the budget.
  [[nodiscard]] std::uint64_t bytes_held() const;

 private:
  struct Ticket;
  struct Slot;
  class Shared;
  static void serve(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Slot>& slot);
  Result<Bytes> read_here(const Read& read);

  const Options options_;
  const std::shared_ptr<Shared> shared_;  // a thread that was left behind may outlive us
};

}  // namespace penstock
