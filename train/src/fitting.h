#pragma once
// One call of fit.

#include <penstock/train/checkpoint.h>
#include <penstock/train/model.h>

#include <chrono>

#include "progress.h"
#include "share_pass.h"

namespace penstock::train {

class Fitting final : public Training {
 public:
  Fitting(const ModelOptions& model, const CompileOptions& compiled, Mirrored& copies,
          const Dataset& train, const FitOptions& options);
  History run();

  [[nodiscard]] std::uint64_t epoch() const override { return epoch_; }
  [[nodiscard]] std::uint64_t step() const override { return steps_; }
  [[nodiscard]] std::uint64_t iteration() const override { return copies_.iterations(); }
  [[nodiscard]] bool resumed() const override { return resumed_; }
  [[nodiscard]] bool writes() const override;
  void set_learning_rate(double rate) override;
  [[nodiscard]] double learning_rate() const override { return copies_.learning_rate(); }
  void stop(const std::string& reason) override;
  [[nodiscard]] Checkpoint checkpoint() override;
  [[nodiscard]] bool can_save() const override { return !in_update_; }
  [[nodiscard]] const History& history() const override { return history_; }

 private:
  /// The results of the replicas of this process for the steps of one update.
  struct Update {
    std::vector<SharePass::Result> results;  // by replica, of the last step
    double divisor = 0;                      // planned samples of the first step
    double samples = 0;                      // in all steps, of this process
    double not_numbers = 0;                  // number of losses that are not numbers
    std::vector<std::uint64_t> bad_samples;
    Where where;
  };

  void restore();
  [[nodiscard]] std::optional<Step> next_step();
  void run_epoch();
  void run_update(Step step);
  void run_step(const Step& step, Update& update, bool first, bool last);
  void take_part(Replica& replica, const Step& step, Update& update, bool first, bool last);
  Mirrored::Outcome decide(Update& update);
  void end_epoch();
  [[nodiscard]] bool interrupted() const;
  void call(const std::function<void(Callback&)>& what);

  const ModelOptions& model_;
  const CompileOptions& compiled_;
  Mirrored& copies_;
  const FitOptions options_;
  Feed feed_;
  std::optional<Feed> validation_;
  Progress progress_;

  std::uint64_t epoch_ = 0;
  std::uint64_t steps_ = 0;  // of this epoch
  ScoreSums sums_;           // of this epoch, this process
  std::uint64_t skipped_ = 0;
  double waited_ = 0;  // seconds for input, this epoch
  std::chrono::steady_clock::time_point began_;
  std::optional<double> rate_;
  bool resumed_ = false;
  bool stopping_ = false;
  bool in_update_ = false;
  bool epoch_done_ = false;  // resumed after the last step of an epoch
  History history_;
};

/// The sums over a whole feed, without training.
ScoreSums evaluate_feed(const ModelOptions& model, const CompileOptions& compiled, Mirrored& copies,
                        Feed& feed, std::optional<std::uint64_t> steps = {});

}  // namespace penstock::train
