#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <penstock/batch.h>
#include <penstock/detail/replica_value.h>

namespace penstock {

struct StrategyCore;
namespace trace {
class Recorder;
}

/// The shares of one global step for the replicas of this process, as returned by `Feed::next`.
/// Copies share the memory of the batches. Thread-safe for reading.
class Step {
 public:
  /// One batch per replica of this process, in replica order; it may have 0 rows.
  [[nodiscard]] std::span<const Batch> shares() const { return shares_; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  /// Number of the step in its epoch, from 0.
  [[nodiscard]] std::uint64_t step() const { return step_; }
  /// Samples in the shares of this process, and in the whole step.
  [[nodiscard]] std::uint64_t valid_count() const;
  [[nodiscard]] std::uint64_t global_valid() const;

 private:
  friend class Feed;
  friend class Strategy;
  Step() = default;
  [[nodiscard]] std::vector<detail::ShareCount> counts() const;

  std::vector<Batch> shares_;
  std::uint64_t epoch_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t feed_ = 0;
  std::shared_ptr<StrategyCore> core_;
  std::weak_ptr<trace::Recorder> recorder_;
};

}  // namespace penstock
