#pragma once
// A model that is compiled and fitted: what the gradient, the loss and the metrics are does not
// depend on the number of replicas, and a run that was killed goes on where it was.
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
  /// Must outlive the model; one CPU device by default.
  Strategy* strategy = nullptr;
  /// Fields of the dataset, as many as forward takes. By default the first field is the input and
  /// the second the target, where there are two; or "image"/"x" and "label"/"y".
  std::vector<std::string> inputs = {};
  std::string target = {};
  /// A field by which the loss of each sample is multiplied.
  std::string sample_weight = {};
};

/// What happens when the loss of a step is no number.
enum class OnNan : std::uint8_t {
  raise,  // the run ends, and says which samples
  skip,   // the step changes no weight, is counted and told
};

struct CompileOptions {
  OptimizerSpec optimizer = adam();
  Loss loss = cross_entropy();
  std::vector<Metric> metrics = {};
  Schedule schedule = {};
  double clip_norm = 0;
  double clip_value = 0;
  /// So many steps make one update, with one count over all their samples.
  std::uint64_t accumulate = 1;
  bool bf16 = false;  // autocast
  std::function<torch::Tensor(torch::nn::Module&)> regulariser = {};
  bool sync_batch_norm = false;
  OnNan on_nan = OnNan::raise;
};

enum class Show : std::uint8_t { automatic, bar, lines, nothing };

struct FitOptions {
  std::uint64_t epochs = 1;  // the number of the last one, plus 1
  std::optional<std::uint64_t> steps_per_epoch = {};
  bool restart = false;  // with steps_per_epoch, as in DistributeOptions
  bool short_epoch = false;
  std::optional<Dataset> validation = {};
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  std::uint64_t initial_epoch = 0;
  /// A folder of checkpoints: goes on from the newest whole one; starts from the beginning, and
  /// says so, where there is none. One that is there and cannot be read is an error.
  std::string resume = {};
  /// Goes on from an older checkpoint where a newer one cannot be read.
  bool resume_older = false;
  LoaderOptions loader = {};
  Show show = Show::automatic;  // a bar in a terminal, a line for each epoch elsewhere
  /// When it becomes non-zero the step under way is finished and fit returns.
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

  /// Throws ConfigError where an option is wrong.
  void compile(const CompileOptions& options);
  /// Trains. `train` is batched by the global batch.
  History fit(const Dataset& train, const FitOptions& options = {});
  /// Loss and metrics over all samples, exact for any number of replicas.
  [[nodiscard]] Scores evaluate(const Dataset& data, const EvaluateOptions& options = {});
  /// What the network gives for each sample, in the order of the dataset before any shuffle.
  [[nodiscard]] torch::Tensor predict(const Dataset& data, const EvaluateOptions& options = {});

  /// The network of the first replica here.
  [[nodiscard]] const Network& network() const;
  [[nodiscard]] Mirrored& mirrored() const;
  /// Loads weights from a checkpoint, or from the newest of a folder of them; nothing else of it.
  void load_weights(const std::string& folder);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::train
