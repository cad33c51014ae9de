#pragma once
// A model with compile and fit: gradient, loss and metrics do not depend on the number of replicas,
// and a run that was killed resumes from its last checkpoint.
//
//   Model model(Net(), {.strategy = &strategy});
//   model.compile({.optimizer = adam(1e-3), .loss = cross_entropy(), .metrics = {accuracy()}});
//   History history = model.fit(train, {.epochs = 5, .validation = val});

#include <penstock/strategy.h>
#include <penstock/train/callback.h>
#include <penstock/train/loss.h>
#include <penstock/train/metric.h>
#include <penstock/train/mirrored.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::train {

struct ModelOptions {
  /// Must outlive the model. Default: one CPU device.
  Strategy* strategy = nullptr;
  /// Fields of the dataset, as many as forward takes. Default: of two fields the first is the input
  /// and the second the target; or "image"/"x" and "label"/"y".
  std::vector<std::string> inputs = {};
  std::string target = {};
  /// A field whose value multiplies the loss of each sample.
  std::string sample_weight = {};
};

/// What to do if the loss of a step is not a number.
enum class OnNan : std::uint8_t {
  raise,  // throw an error that names the samples
  skip,   // skip the update; the step is counted and reported
};

struct CompileOptions {
  OptimizerSpec optimizer = adam();
  Loss loss = cross_entropy();
  std::vector<Metric> metrics = {};
  Schedule schedule = {};
  double clip_norm = 0;
  double clip_value = 0;
  /// The number of steps per update; the gradient is the mean over all their samples.
  std::uint64_t accumulate = 1;
  bool bf16 = false;  // autocast
  std::function<torch::Tensor(torch::nn::Module&)> regularizer = {};
  bool sync_batch_norm = false;
  OnNan on_nan = OnNan::raise;
};

enum class Show : std::uint8_t { automatic, bar, lines, nothing };

struct FitOptions {
  std::uint64_t epochs = 1;  // in all, including those before a resume
  std::optional<std::uint64_t> steps_per_epoch = {};
  bool restart = false;  // with steps_per_epoch: see DistributeOptions
  bool short_epoch = false;
  std::optional<Dataset> validation = {};
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  std::uint64_t initial_epoch = 0;
  /// A folder of checkpoints: resumes from the newest intact one; if there is none, starts from the
  /// beginning and says so. A checkpoint that exists but cannot be read is an error.
  std::string resume = {};
  /// Resumes from an older checkpoint if a newer one cannot be read.
  bool resume_older = false;
  LoaderOptions loader = {};
  Show show = Show::automatic;  // a bar in a terminal, one line per epoch elsewhere
  /// When it becomes nonzero, fit finishes the current step and returns.
  const std::atomic<int>* interrupt = nullptr;
};

struct EvaluateOptions {
  std::optional<std::uint64_t> steps = {};
  LoaderOptions loader = {};
};

class Model {
 public:
  Model(const Network& network, const ModelOptions& options = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Throws ConfigError if an option is wrong.
  void compile(const CompileOptions& options);
  /// Trains on `train`, whose batches are global batches.
  History fit(const Dataset& train, const FitOptions& options = {});
  /// Loss and metrics over all samples, exact for any number of replicas.
  [[nodiscard]] Scores evaluate(const Dataset& data, const EvaluateOptions& options = {});
  /// The output of the network for each sample, in the order of the dataset before any shuffle.
  [[nodiscard]] torch::Tensor predict(const Dataset& data, const EvaluateOptions& options = {});

  /// The network of the first replica of this process.
  [[nodiscard]] const Network& network() const;
  [[nodiscard]] Mirrored& mirrored() const;
  /// Loads the weights, and nothing else, from a checkpoint or from the newest one of a folder.
  void load_weights(const std::string& folder);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::train
