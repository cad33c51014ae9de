#pragma once
// What happens beside training, after each step and each epoch.

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
  /// "loss" or a metric; nothing where there is none of that name.
  [[nodiscard]] std::optional<double> find(const std::string& name) const;
};

struct EpochLog {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;
  Scores train;
  std::optional<Scores> validation;
  double learning_rate = 0;
  double seconds = 0;
  double input_wait = 0;            // share of the time that was spent waiting for input
  std::uint64_t skipped_steps = 0;  // whose loss was no number
  /// "loss", "accuracy", "val_loss", "val_accuracy" ...
  [[nodiscard]] std::optional<double> find(const std::string& name) const;
};

struct History {
  std::vector<EpochLog> epochs;
  bool complete = false;  // all epochs were trained
  std::string ended_by;   // why not, otherwise
  std::uint64_t iterations = 0;
  /// What callbacks could not do and never caught up on: a save or a log that failed. Training does
  /// not end for these.
  std::vector<std::string> problems;
};

struct Checkpoint;

/// What a callback may look at and change while fit runs.
class Training {
 public:
  virtual ~Training() = default;
  [[nodiscard]] virtual std::uint64_t epoch() const = 0;
  /// Steps done in this epoch, and updates since the beginning.
  [[nodiscard]] virtual std::uint64_t step() const = 0;
  [[nodiscard]] virtual std::uint64_t iteration() const = 0;
  /// True when fit began from a checkpoint.
  [[nodiscard]] virtual bool resumed() const = 0;
  /// True in the process that writes files.
  [[nodiscard]] virtual bool writes() const = 0;
  virtual void set_learning_rate(double rate) = 0;
  [[nodiscard]] virtual double learning_rate() const = 0;
  /// Ends fit after this step or epoch.
  virtual void stop(const std::string& reason) = 0;
  /// All that is needed to go on from here. Collective where there are several processes.
  [[nodiscard]] virtual Checkpoint checkpoint() = 0;
  /// False in the middle of an update that was interrupted: what it has read is not learnt.
  [[nodiscard]] virtual bool can_save() const = 0;
  [[nodiscard]] virtual const History& history() const = 0;
};

/// Called in the thread of fit, on every process alike. What one throws ends fit.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_begin(Training&) {}
  virtual void on_epoch_begin(Training&) {}
  /// `so_far` are the scores of this process's samples in this epoch.
  virtual void on_step_end(Training&, const Scores& so_far) { (void)so_far; }
  virtual void on_epoch_end(Training&, const EpochLog&) {}
  virtual void on_end(Training&) {}
  /// After the end: what it could not do, for History::problems; empty where all went well.
  [[nodiscard]] virtual std::string problem() const { return {}; }
};

struct CheckpointOptions {
  std::uint64_t every_steps = 0;  // 0: after each epoch only
  std::uint64_t keep = 3;         // the newest so many
  /// Keeps the best one by this name ("val_loss", "val_accuracy") as well, in `best`.
  std::string best = {};
  bool on_stop = true;  // also when fit is interrupted
};
class Checkpoints : public Callback {
 public:
  /// The update after which the newest checkpoint that is known to be on disk was made; nothing
  /// where there is none. In the process that writes.
  [[nodiscard]] virtual std::optional<std::uint64_t> saved() const = 0;
};
/// Saves to `folder`. A save that fails is reported, and training goes on. A folder with newer
/// checkpoints than where fit begins is a ConfigError: a later resume would take one of those.
std::shared_ptr<Checkpoints> checkpoints(const std::string& folder, const CheckpointOptions& = {});

struct EarlyStoppingOptions {
  std::string watch = "val_loss";
  std::uint64_t patience = 3;  // epochs without getting better
  double min_change = 0;
};
/// Smaller is better for names that hold "loss" or "error", larger for all others.
std::shared_ptr<Callback> early_stopping(const EarlyStoppingOptions& options = {});
/// One line of values for each epoch. Lines that cannot be written, as on a full disk, are reported
/// and tried again; the file of a resumed run has every epoch once, and any
/// other run begins it anew.
std::shared_ptr<Callback> csv_log(const std::string& file);
/// One JSON object for each epoch, on a line of its own.
std::shared_ptr<Callback> json_log(const std::string& file);
/// Event files that TensorBoard reads: the loss of every step, the scores of every epoch.
std::shared_ptr<Callback> tensorboard(const std::string& folder);
/// The rate of an epoch, from its number.
std::shared_ptr<Callback> learning_rate(std::function<double(std::uint64_t epoch)> rate);
/// A callback from functions; leave out what is not needed.
struct Hooks {
  std::function<void(Training&)> on_epoch_begin = {};
  std::function<void(Training&, const Scores&)> on_step_end = {};
  std::function<void(Training&, const EpochLog&)> on_epoch_end = {};
};
std::shared_ptr<Callback> hooks(Hooks functions);

}  // namespace penstock::train
