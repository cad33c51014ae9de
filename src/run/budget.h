#pragma once
// Bytes that batches waiting for their consumers may take, over all loaders of the process.

#include <atomic>
#include <cstdint>

namespace penstock {

/// Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t limit) : limit_(limit) {}
  /// A quarter of the memory that was available when it was first asked for (cgroup included).
  static ByteBudget& process();

  /// Takes `bytes` if they are left, or if `must` (a loader always may have one step in flight).
  bool take(std::uint64_t bytes, bool must);
  /// True when `bytes` are left.
  [[nodiscard]] bool has(std::uint64_t bytes) const { return used() + bytes <= limit_; }
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace penstock
