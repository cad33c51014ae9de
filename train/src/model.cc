#include <penstock/train/model.h>

#include <fmt/format.h>
#include <penstock/train/checkpoint.h>
#include <penstock/train/tensors.h>

#include <map>

#include "fitting.h"

namespace penstock::train {

class Model::Impl {
 public:
  Impl(const Network& network, const ModelOptions& options) : network_(network), options_(options) {
    if (options_.strategy == nullptr) {
      own_.emplace("cpu:0", StrategyOptions{.process = ProcessRank{}});
      options_.strategy = &*own_;
    }
  }

  void compile(const CompileOptions& options) {
    if (options.accumulate == 0)
      throw ConfigError("compile: accumulate of 0 steps", {}, "1 means one update per step");
    if (options.clip_norm < 0 || options.clip_value < 0)
      throw ConfigError(fmt::format("compile: clip_norm {} and clip_value {}", options.clip_norm,
                                    options.clip_value),
                        {}, "0 leaves gradients unchanged");
    if (!options.loss.per_sample) throw ConfigError("compile: no loss was given");
    std::map<std::string, int> names;
    for (const Metric& metric : options.metrics)
      if (++names[metric.name] > 1)
        throw ConfigError(fmt::format("compile: two metrics are called {}", metric.name), {},
                          "rename one of them");
    compiled_ = options;
    copies_.reset();
    copies_ =
        std::make_unique<Mirrored>(*options_.strategy, network_,
                                   MirroredOptions{.optimizer = options.optimizer,
                                                   .schedule = options.schedule,
                                                   .clip_norm = options.clip_norm,
                                                   .clip_value = options.clip_value,
                                                   .regularizer = options.regularizer,
                                                   .sync_batch_norm = options.sync_batch_norm});
  }

  Mirrored& copies(const char* word) {
    if (!compiled_)
      throw ConfigError(fmt::format("{}: the model is not compiled", word), {},
                        "call compile({.optimizer = ..., .loss = ...}) first");
    return *copies_;
  }
  /// For predict, which needs no loss.
  Mirrored& any_copies() {
    if (!compiled_) compile({});
    return *copies_;
  }

  Scores evaluate(const Dataset& data, const EvaluateOptions& options) {
    Mirrored& copies = this->copies("evaluate");
    copies.merge_buffers();
    Feed feed = copies.strategy().distribute(data, {.loader = options.loader});
    return evaluate_feed(options_, *compiled_, copies, feed, options.steps)
        .over(copies.group())
        .scores(compiled_->metrics);
  }

  torch::Tensor predict(const Dataset& data, const EvaluateOptions& options);

  Network network_;
  ModelOptions options_;
  std::optional<OneDeviceStrategy> own_;
  std::optional<CompileOptions> compiled_;
  std::unique_ptr<Mirrored> copies_;
};

namespace {

/// Outputs with the numbers of their samples, and where they were delivered.
struct Predictions {
  std::vector<torch::Tensor> outputs;
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> places;

  void add(const Batch& share, std::int64_t step, const torch::Tensor& output) {
    const torch::Tensor rows = output.detach().cpu();
    std::vector<std::int64_t> kept;
    for (std::size_t row = 0; row < share.rows(); ++row) {
      if (share.valid()[row] == 0) continue;
      kept.push_back(static_cast<std::int64_t>(row));
      ids.push_back(static_cast<std::int64_t>(share.sample_id()[row]));
      places.push_back((step << 24) + share.share());
    }
    outputs.push_back(rows.index_select(0, torch::tensor(kept, torch::kInt64)));
  }

  /// In the order of the dataset; in order of delivery if a sample came twice.
  [[nodiscard]] torch::Tensor in_order(ProcessGroup* group) const {
    torch::Tensor all = outputs.empty() ? torch::empty({0}) : torch::cat(outputs);
    torch::Tensor numbers = torch::tensor(ids, torch::kInt64);
    torch::Tensor delivered = torch::tensor(places, torch::kInt64);
    if (group != nullptr) {
      NamedTensors own{{"ids", numbers}, {"places", delivered}};
      if (!outputs.empty()) own.emplace_back("outputs", all);
      std::vector<torch::Tensor> every, every_number, every_place;
      for (const std::string& one : group->gather("predictions", encode_tensors(own)))
        for (const auto& [name, value] : decode_tensors("predictions", one))
          (name == "ids" ? every_number : name == "places" ? every_place : every).push_back(value);
      all = every.empty() ? torch::empty({0}) : torch::cat(every);
      numbers = torch::cat(every_number);
      delivered = torch::cat(every_place);
    }
    if (numbers.numel() == 0) return all;
    const bool once = std::get<0>(torch::_unique(numbers)).numel() == numbers.numel();
    const torch::Tensor by = once ? numbers : delivered;
    return all.index_select(0, torch::argsort(by, /*stable=*/true, /*dim=*/0, false));
  }
};

}  // namespace

torch::Tensor Model::Impl::predict(const Dataset& data, const EvaluateOptions& options) {
  Mirrored& copies = any_copies();
  copies.merge_buffers();
  for (std::size_t r = 0; r < copies.strategy().devices().size(); ++r)
    copies.copy(r).module().eval();
  Feed feed = copies.strategy().distribute(data, {.loader = options.loader});
  const SharePass pass{options_, *compiled_, copies};
  Predictions found;
  for (std::int64_t done = 0; !options.steps || done < static_cast<std::int64_t>(*options.steps);
       ++done) {
    const auto step = feed.next();
    if (!step) break;
    const auto outputs = copies.strategy().run(
        [&](Replica& replica, const Batch& share) {
          const torch::NoGradGuard no_grad;
          return pass.run(replica, share, /*scores=*/false).output;
        },
        *step);
    for (std::size_t r = 0; r < outputs.size(); ++r)
      if (outputs.has(r)) found.add(step->shares()[r], done, outputs[r]);
  }
  for (std::size_t r = 0; r < copies.strategy().devices().size(); ++r)
    copies.copy(r).module().train();
  return found.in_order(copies.group());
}

Model::Model(const Network& network, const ModelOptions& options)
    : impl_(std::make_unique<Impl>(network, options)) {}
Model::~Model() = default;

void Model::compile(const CompileOptions& options) {
  impl_->compile(options);
}
History Model::fit(const Dataset& train, const FitOptions& options) {
  Mirrored& copies = impl_->copies("fit");
  return Fitting(impl_->options_, *impl_->compiled_, copies, train, options).run();
}
Scores Model::evaluate(const Dataset& data, const EvaluateOptions& options) {
  return impl_->evaluate(data, options);
}
torch::Tensor Model::predict(const Dataset& data, const EvaluateOptions& options) {
  return impl_->predict(data, options);
}
const Network& Model::network() const {
  return impl_->network_;
}
Mirrored& Model::mirrored() const {
  return impl_->copies("mirrored");
}
void Model::load_weights(const std::string& folder) {
  const auto newest = newest_checkpoint(folder);
  const std::string path = newest.value_or(folder);
  const Checkpoint saved = load_checkpoint(path);
  Mirrored& copies = impl_->any_copies();
  copies.restore(path, saved.model, {}, 0);
}

}  // namespace penstock::train
