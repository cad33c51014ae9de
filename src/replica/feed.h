#pragma once

#include "feed/epoch_loop.h"
#include "penstock/loader.h"
#include "penstock/strategy.h"
#include "replica/core.h"

namespace penstock {

class Feed::Impl {
 public:
  /// `dataset` has global batches, and `options` have been checked.
  Impl(const Dataset& dataset, const DistributeOptions& options, const Shares& shares,
       std::shared_ptr<StrategyCore> core);

  std::optional<Step> next();
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] const Plan& plan() const { return loader_.plan(); }
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::uint64_t epoch() const { return steps_ ? epoch_ : loader_.epoch(); }
  [[nodiscard]] State state() const;
  void set_epoch(std::uint64_t epoch);
  void restore(const State& state);
  void stop() { loader_.stop(); }
  [[nodiscard]] const Ledger& ledger() const { return loader_.ledger(); }
  [[nodiscard]] Report report() const { return loader_.report(); }
  void begin_loop();
  /// All ranks must draw the same seed.
  void share_seed(Coordinator& coordinator);

 private:
  [[nodiscard]] std::optional<std::vector<Batch>> pull();
  void end_epoch();
  [[nodiscard]] Step step_of(std::vector<Batch> shares, const State::Epochs& at);

  Loader loader_;
  std::shared_ptr<StrategyCore> core_;
  std::uint64_t number_;
  std::optional<std::uint64_t> steps_;  // per epoch; none: an epoch is a pass
  bool restart_;
  bool short_epoch_;
  OneBatchWatch watch_;
  EpochLoop loop_{watch_};
  bool resumed_ = false;  // a state was restored, and nothing was requested since

  // Only used with steps_
  std::uint64_t epoch_ = 0;
  std::uint64_t epoch_steps_ = 0;  // received in this epoch
  std::uint64_t pass_steps_ = 0;   // received in this pass
};

/// Throws ConfigError if `steps_per_epoch` does not fit the length of the data.
void check_epochs(const Cardinality& steps, const DistributeOptions& options);

}  // namespace penstock
