#pragma once
// Bytes that batches waiting for their consumers may take, over all loaders of the process.

#include <atomic>
#include <cstdint>
#include <utility>

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

/// Bytes taken from a budget, given back when it is destroyed. One thread at a time.
class BudgetLease {
 public:
  BudgetLease() = default;
  ~BudgetLease() { resize(0); }
  BudgetLease(BudgetLease&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  BudgetLease& operator=(BudgetLease&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  /// As ByteBudget::take, in place of what was taken before.
  bool take(ByteBudget& budget, std::uint64_t bytes, bool must) {
    if (!budget.take(bytes, must)) return false;
    resize(0);
    budget_ = &budget;
    bytes_ = bytes;
    return true;
  }
  /// What was taken turned out to be `bytes`; nothing happens where nothing was taken.
  void resize(std::uint64_t bytes) {
    if (budget_ == nullptr) return;
    if (bytes > bytes_) budget_->take(bytes - bytes_, true);
    if (bytes < bytes_) budget_->give_back(bytes_ - bytes);
    bytes_ = bytes;
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  ByteBudget* budget_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace penstock
