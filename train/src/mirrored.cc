#include <penstock/train/mirrored.h>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <penstock/train/layers.h>
#include <penstock/train/process_group.h>
#include <penstock/train/tensors.h>

#include <random>

#include "base/digest.h"
#include "base/report.h"
#include "base/thread.h"
#include "gradient_buckets.h"
#include "named_values.h"

namespace penstock::train {
namespace {

std::vector<torch::Tensor> trainable(const torch::nn::Module& module) {
  std::vector<torch::Tensor> found;
  for (const auto& item : module.named_parameters())
    if (item.value().requires_grad()) found.push_back(item.value());
  return found;
}

std::vector<std::string> trainable_names(const torch::nn::Module& module) {
  std::vector<std::string> found;
  for (const auto& item : module.named_parameters())
    if (item.value().requires_grad()) found.push_back(item.key());
  return found;
}

/// Numbers our layers, and warns about layers that draw from torch's generator.
void prepare_layers(torch::nn::Module& module, bool several_replicas) {
  std::string drawing;
  for (const auto& item : module.named_modules("model")) {
    if (auto* const ours = item.value()->as<DropoutImpl>()) {
      std::uint64_t layer = 0;
      for (const char letter : item.key())
        layer = combine(layer, static_cast<unsigned char>(letter));
      ours->set_layer(layer);
    } else if (item.value()->name().find("Dropout") != std::string::npos) {
      drawing += fmt::format("{}{}", drawing.empty() ? "" : ", ", item.key());
    }
  }
  if (several_replicas && !drawing.empty())
    report(fmt::format(
        "model: {} is torch's dropout: replicas that are threads draw from one generator, in any "
        "order, so that a rerun differs; use penstock::train::Dropout",
        drawing));
}

/// From 64 random bits, independent of any seed.
std::string random_name() {
  std::random_device device;
  const auto high = static_cast<std::uint64_t>(device()) << 32U;
  return fmt::format("{:016x}", high | device());
}

Tensor zero() {
  return Tensor::scalar(0.0);
}

}  // namespace

class Mirrored::Impl {
 public:
  Impl(Strategy& strategy, const Network& network, const MirroredOptions& options)
      : strategy_(strategy), options_(options) {
    auto* const several = dynamic_cast<MultiWorkerMirroredStrategy*>(&strategy);
    if (several != nullptr && several->group().world() > 1) group_ = &several->group();
    if (several == nullptr && strategy.num_replicas_in_sync() != strategy.devices().size())
      throw ConfigError(
          fmt::format("model: the strategy has {} replicas, {} of them in this process",
                      strategy.num_replicas_in_sync(), strategy.devices().size()),
          {}, "use train::MultiWorkerMirroredStrategy for several processes");
    if (options.sync_batch_norm) synchronized_ = sync_batch_norm(network.module()) > 0;
    for (const auto& module : network.module().modules())
      if (const auto* const norm = module->as<BatchNormImpl>()) synchronized_ |= norm->sync();
    copy_network(network);
    const std::size_t replicas = copies_.size();
    std::vector<std::vector<torch::Tensor>> parameters;
    for (const Network& one : copies_) {
      parameters.push_back(trainable(one.module()));
      optimizers_.push_back(options.optimizer.make(parameters.back()));
      prepare_layers(one.module(), replicas > 1 && &one == copies_.data());
    }
    names_ = trainable_names(network.module());
    if (parameters.front().empty())
      throw ConfigError("model: no parameter of the network can be trained");
    buckets_ = std::make_unique<GradientBuckets>(std::move(parameters), group_);
    share_threads();
  }

  void copy_network(const Network& network) {
    const auto& devices = strategy_.devices();
    for (const std::string& name : devices) devices_.push_back(torch_device(name));
    if (group_ != nullptr) {
      group_->compare("the model (names and shapes of its values)", values_text(network.module()));
      group_->use_device(devices_.front());
      for (const auto& [name, value] : named_values(network.module()))
        group_->broadcast("first values of the model", value);
    }
    network.module().to(devices_.front());
    copies_.push_back(network);
    for (std::size_t r = 1; r < devices.size(); ++r) copies_.push_back(network.copy(devices_[r]));
  }

  /// Replicas that are threads share the cores; torch would use all of them for each.
  void share_threads() {
    if (copies_.size() == 1) return;
    const auto each = std::max<std::size_t>(1, usable_cores() / copies_.size());
    strategy_.each([each](Replica&) { at::set_num_threads(static_cast<int>(each)); });
  }

  void clip() {
    const torch::NoGradGuard no_grad;
    if (options_.clip_value > 0)
      for (torch::Tensor flat : buckets_->sums())
        flat.clamp_(-options_.clip_value, options_.clip_value);
    if (options_.clip_norm <= 0) return;
    double squares = 0;
    for (const torch::Tensor& flat : buckets_->sums())
      squares += flat.to(torch::kFloat64).square().sum().item<double>();
    const double norm = std::sqrt(squares);
    if (norm > options_.clip_norm) buckets_->scale(options_.clip_norm / norm);
  }

  void reduce_and_apply(Replica& replica, const std::function<Outcome()>& decide) {
    const std::size_t own = replica.local_id();
    buckets_->finish(own);
    (void)replica.sum_here(zero());  // waits for all
    if (own == 0) {
      buckets_->complete();
      outcome_ = decide();
      if (outcome_.apply) {
        buckets_->scale(outcome_.factor);
        if (options_.regularizer) {
          const torch::Tensor penalty = options_.regularizer(copies_.front().module());
          penalty.backward();
          penalty_ = penalty.item<double>();
        }
        clip();
      }
    }
    (void)replica.sum_here(zero());  // waits until the sums are complete
    if (!outcome_.apply) return;
    buckets_->adopt(own);
    set_learning_rate_of(*optimizers_[own]);
    optimizers_[own]->step();
  }

  void set_learning_rate_of(torch::optim::Optimizer& optimizer) const {
    if (rate_ || options_.schedule) train::set_learning_rate(optimizer, learning_rate());
  }
  [[nodiscard]] double learning_rate() const {
    if (rate_) return *rate_;
    return options_.schedule ? options_.schedule(iterations_) : options_.optimizer.learning_rate;
  }

  void finish_update() {
    if (!outcome_.apply) return;
    ++iterations_;
    if (options_.check_every > 0 && iterations_ % options_.check_every == 0) check_equal();
  }

  /// Only trained values: buffers of batch norm may differ until they are merged.
  [[nodiscard]] std::uint64_t hash(std::size_t replica) const {
    Digest digest;
    for (const torch::Tensor& value : trainable(copies_[replica].module())) {
      const torch::Tensor bytes = value.detach().cpu().contiguous();
      digest.add({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
    }
    return digest.value();
  }

  void check_equal() {
    std::string text = "";
    const std::uint64_t first = hash(0);
    for (std::size_t r = 1; r < copies_.size(); ++r)
      if (hash(r) != first) text += fmt::format(" {}", r);
    if (!text.empty())
      throw InternalError(
          fmt::format("after {} updates the parameters of replica{} differ from "
                      "those of replica 0",
                      iterations_, text));
    if (group_ != nullptr)
      group_->compare(fmt::format("the parameters after {} updates", iterations_),
                      fmt::format("{:016x}", first));
  }

  void merge_buffers() {
    const torch::NoGradGuard no_grad;
    const double replicas = strategy_.num_replicas_in_sync();
    if (replicas == 1) return;
    std::vector<std::vector<torch::Tensor>> all;
    for (const Network& one : copies_) all.push_back(one.module().buffers());
    for (std::size_t i = 0; i < all.front().size(); ++i) {
      torch::Tensor first = all[0][i];
      if (!first.defined()) continue;
      if (first.is_floating_point()) {
        for (std::size_t r = 1; r < all.size(); ++r) first.add_(all[r][i].to(first.device()));
        if (group_ != nullptr) group_->sum("buffers of the model", first);
        first.div_(replicas);
      }
      for (std::size_t r = 1; r < all.size(); ++r) all[r][i].copy_(first);
    }
  }

  void restore(const std::string& what, const NamedTensors& values,
               const NamedTensors& optimizer_values, std::uint64_t iterations) {
    for (std::size_t r = 0; r < copies_.size(); ++r) {
      load_values(what, values, copies_[r].module());
      restore_optimizer(*optimizers_[r], names_, optimizer_values);
    }
    iterations_ = iterations;
  }

  Strategy& strategy_;
  const MirroredOptions options_;
  ProcessGroup* group_ = nullptr;
  bool synchronized_ = false;
  std::vector<torch::Device> devices_;
  std::vector<Network> copies_;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers_;
  std::vector<std::string> names_;
  std::unique_ptr<GradientBuckets> buckets_;
  std::uint64_t iterations_ = 0;
  std::string run_ = random_name();
  std::optional<double> rate_;
  Outcome outcome_;
  double penalty_ = 0;
};

Mirrored::Mirrored(Strategy& strategy, const Network& network, const MirroredOptions& options)
    : impl_(std::make_unique<Impl>(strategy, network, options)) {
  begin();
  strategy.each([this](Replica& replica) { clear(replica); });
}
Mirrored::~Mirrored() = default;

Strategy& Mirrored::strategy() const {
  return impl_->strategy_;
}
const Network& Mirrored::operator[](const Replica& replica) const {
  return impl_->copies_.at(replica.local_id());
}
const Network& Mirrored::copy(std::size_t local_replica) const {
  return impl_->copies_.at(local_replica);
}
const torch::Device& Mirrored::device(std::size_t local_replica) const {
  return impl_->devices_.at(local_replica);
}

void Mirrored::update(const Step& step) {
  double count = static_cast<double>(step.valid_count());
  if (group() != nullptr) {
    torch::Tensor all = torch::full({1}, count, torch::kFloat64);
    group()->sum("samples of the step", all);
    count = all.item<double>();
  }
  if (count == 0) return;
  arm();
  strategy().each([&](Replica& replica) {
    reduce_and_apply(replica, [count] { return Outcome{1 / count, true}; });
  });
  finish_update();
  begin();
  strategy().each([this](Replica& replica) { clear(replica); });
}

std::uint64_t Mirrored::iterations() const {
  return impl_->iterations_;
}
double Mirrored::learning_rate() const {
  return impl_->learning_rate();
}
void Mirrored::set_learning_rate(double rate) {
  impl_->rate_ = rate;
}
void Mirrored::check_equal() {
  impl_->check_equal();
}
void Mirrored::merge_buffers() {
  impl_->merge_buffers();
}
void Mirrored::begin() {
  impl_->buckets_->begin();
}
void Mirrored::clear(Replica& replica) {
  impl_->buckets_->clear(replica.local_id());
}
void Mirrored::arm() {
  impl_->buckets_->arm();
}
void Mirrored::reduce_and_apply(Replica& replica, const std::function<Outcome()>& decide) {
  impl_->reduce_and_apply(replica, decide);
}
void Mirrored::finish_update() {
  impl_->finish_update();
}
double Mirrored::penalty(bool fresh) const {
  if (!fresh || !impl_->options_.regularizer) return impl_->penalty_;
  const torch::NoGradGuard no_grad;
  return impl_->options_.regularizer(impl_->copies_.front().module()).item<double>();
}
ProcessGroup* Mirrored::group() const {
  return impl_->group_;
}
bool Mirrored::synchronized() const {
  return impl_->synchronized_;
}
const std::string& Mirrored::run() const {
  return impl_->run_;
}
void Mirrored::set_run(const std::string& run) {
  impl_->run_ = run;
}
NamedTensors Mirrored::values() const {
  return named_values(impl_->copies_.front().module());
}
NamedTensors Mirrored::optimizer_values() {
  return optimizer_state(*impl_->optimizers_.front(), impl_->names_);
}
void Mirrored::restore(const std::string& what, const NamedTensors& values,
                       const NamedTensors& optimizer_values, std::uint64_t iterations) {
  impl_->restore(what, values, optimizer_values, iterations);
}
GradientBuckets& Mirrored::buckets() const {
  return *impl_->buckets_;
}

}  // namespace penstock::train
