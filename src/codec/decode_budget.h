#pragma once
// Limits the memory of large images over all threads of the process: a few files that decode to
// gigabytes must not be decoded by every thread at once.

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "base/mutex.h"

namespace penstock {

/// Thread-safe.
class DecodeBudget {
 public:
  /// Smaller images are not counted: there are no more of them than threads.
  static constexpr std::uint64_t kCountedBytes = std::uint64_t{16} << 20;

  /// Called while an image waits; true ends the wait.
  using Cancelled = std::function<bool()>;

  explicit DecodeBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  /// A quarter of the memory that was available at the first call.
  static DecodeBudget& process();

  /// The memory of one image; its destructor returns it. Used by one thread.
  class Claim {
   public:
    Claim() = default;
    ~Claim() { release(); }
    Claim(Claim&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Claim& operator=(Claim&&) = delete;

    /// Adds `bytes`. When that makes the image a large one it blocks until there is room; a single
    /// image always has room. After that it never blocks again, since it would hold memory that
    /// others wait for. Returns false if `cancelled` ended the wait.
    bool add(DecodeBudget& budget, std::uint64_t bytes, const Cancelled& cancelled = {});

   private:
    void release();
    DecodeBudget* budget_ = nullptr;  // set when it is counted
    std::uint64_t bytes_ = 0;
  };

  [[nodiscard]] std::uint64_t used() const;
  /// Number of images that wait for room.
  [[nodiscard]] std::size_t waiting() const;

 private:
  bool enter(std::uint64_t bytes, const Cancelled& cancelled);
  void change(std::uint64_t more, std::uint64_t less);

  const std::uint64_t bytes_max_;
  mutable Mutex mutex_;
  Condition changed_;
  std::uint64_t used_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::set<std::uint64_t> line_
      PENSTOCK_GUARDED_BY(mutex_);  // the waiting images, in order of arrival
};

}  // namespace penstock
