#pragma once
// Callbacks: functions that fit calls after each step and each epoch.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::train {

/// Loss, and metrics by name.
struct Scores {
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;
  std::uint64_t samples = 0;
  /// "loss" or a metric; nullopt if there is none of that name.
  [[nodiscard]] std::optional<double> find(const std::string& name) const;
};

struct EpochLog {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;
  Scores train;
  std::optional<Scores> validation;
  double learning_rate = 0;
  double seconds = 0;
  double input_wait = 0;            // fraction of the time spent waiting for input
  std::uint64_t skipped_steps = 0;  // steps whose loss was not a number
  /// "loss", "accuracy", "val_loss", "val_accuracy" ...
  [[nodiscard]] std::optional<double> find(const std::string& name) const;
};

struct History {
  std::vector<EpochLog> epochs;
  bool complete = false;  // all epochs were trained
  std::string ended_by;   // otherwise, the reason
  std::uint64_t iterations = 0;
  /// Failures of callbacks that were not made up for: a save or a log that failed. They do not end
  /// training.
  std::vector<std::string> problems;
};

struct Checkpoint;

/// What a callback may read and change while fit runs.
class Training {
 public:
  virtual ~Training() = default;
  [[nodiscard]] virtual std::uint64_t epoch() const = 0;
  /// Steps done in this epoch, and updates since the start of training.
  [[nodiscard]] virtual std::uint64_t step() const = 0;
  [[nodiscard]] virtual std::uint64_t iteration() const = 0;
  /// True if fit started from a checkpoint.
  [[nodiscard]] virtual bool resumed() const = 0;
  /// True in the process that writes files.
  [[nodiscard]] virtual bool writes() const = 0;
  virtual void set_learning_rate(double rate) = 0;
  [[nodiscard]] virtual double learning_rate() const = 0;
  /// Ends fit after this step or epoch.
  virtual void stop(const std::string& reason) = 0;
  /// Everything that is needed to resume from here. A collective if there are several processes.
  [[nodiscard]] virtual Checkpoint checkpoint() = 0;
  /// False in the middle of an interrupted update, whose samples have not changed the weights.
  [[nodiscard]] virtual bool can_save() const = 0;
  [[nodiscard]] virtual const History& history() const = 0;
};

/// Called in the thread of fit, on every process. An exception from one ends fit.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_begin(Training&) {}
  virtual void on_epoch_begin(Training&) {}
  /// `so_far`: the scores of this process's samples in this epoch.
  virtual void on_step_end(Training&, const Scores& so_far) { (void)so_far; }
  virtual void on_epoch_end(Training&, const EpochLog&) {}
  virtual void on_end(Training&) {}
  /// Called at the end: what failed, for History::problems; empty if nothing did.
  [[nodiscard]] virtual std::string problem() const { return {}; }
};

struct CheckpointOptions {
  std::uint64_t every_steps = 0;  // 0: only after each epoch
  std::uint64_t keep = 3;         // how many of the newest are kept
  /// Also keeps the best one by this score ("val_loss", "val_accuracy"), in `best`.
  std::string best = {};
  bool on_stop = true;  // also when fit is interrupted
};
class Checkpoints : public Callback {
 public:
  /// The update of the newest checkpoint that is known to be on disk; nullopt if there is none.
  /// Only in the process that writes.
  [[nodiscard]] virtual std::optional<std::uint64_t> saved() const = 0;
};
/// Saves to `folder`. A save that fails is reported, and training continues. If the folder has
/// newer checkpoints than the start of fit, fit throws ConfigError: a later resume would load one
/// of those.
std::shared_ptr<Checkpoints> checkpoints(const std::string& folder, const CheckpointOptions& = {});

struct EarlyStoppingOptions {
  std::string watch = "val_loss";
  std::uint64_t patience = 3;  // epochs without improvement
  double min_change = 0;
};
/// Smaller is better for names that contain "loss" or "error", larger for all others.
std::shared_ptr<Callback> early_stopping(const EarlyStoppingOptions& options = {});
/// One line of values per epoch. Lines that cannot be written, as on a full disk, are reported and
/// retried. The file of a resumed run has every epoch once; any other run overwrites it.
std::shared_ptr<Callback> csv_log(const std::string& file);
/// One JSON object per epoch, each on its own line.
std::shared_ptr<Callback> json_log(const std::string& file);
/// Event files for TensorBoard: the loss of every step, the scores of every epoch.
std::shared_ptr<Callback> tensorboard(const std::string& folder);
/// Sets the learning rate of each epoch, from its number.
std::shared_ptr<Callback> learning_rate(std::function<double(std::uint64_t epoch)> rate);
/// A callback built from functions; omit those that are not needed.
struct Hooks {
  std::function<void(Training&)> on_epoch_begin = {};
  std::function<void(Training&, const Scores&)> on_step_end = {};
  std::function<void(Training&, const EpochLog&)> on_epoch_end = {};
};
std::shared_ptr<Callback> hooks(Hooks functions);

}  // namespace penstock::train
