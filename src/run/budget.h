#pragma once
// The byte budget of batches that wait for their consumers, shared by all loaders of the process.

#include <atomic>
#include <cstdint>
#include <utility>

namespace penstock {

/// Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(std::uint64_t limit) : limit_(limit) {}
  /// A quarter of the memory (within the cgroup limit) that was available at the first call.
  static ByteBudget& process();

  /// Takes `bytes` if they are available, or if `must` (each loader may always have one step in
  /// flight).
  bool take(std::uint64_t bytes, bool must);
  /// True if `bytes` are available.
  [[nodiscard]] bool has(std::uint64_t bytes) const { return used() + bytes <= limit_; }
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

/// Bytes taken from a budget; the destructor returns them. One thread at a time.
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

  /// Like ByteBudget::take; replaces the previous amount.
  bool take(ByteBudget& budget, std::uint64_t bytes, bool must) {
    if (!budget.take(bytes, must)) return false;
    resize(0);
    budget_ = &budget;
    bytes_ = bytes;
    return true;
  }
  /// Corrects the amount to `bytes`; a no-op if nothing was taken.
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
