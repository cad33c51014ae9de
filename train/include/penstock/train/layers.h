#pragma once
// Layers that know they are one of several replicas: their effect on a sample does not depend on
// how the step was cut.

#include <penstock/strategy.h>
#include <torch/torch.h>

#include <cstdint>

namespace penstock::train {

class ProcessGroup;

/// What the layers need to know about their rows. The trainer sets it around each forward and
/// backward pass; a custom loop does so in the function that run calls:
///   const ShareScope scope(replica, share, {.iteration = n});
class ShareScope {
 public:
  struct Options {
    std::uint64_t iteration = 0;    // number of the update: masks differ between updates
    ProcessGroup* group = nullptr;  // of the strategy, if it has several processes
    bool synchronized = false;      // all replicas run it, including those without rows
    bool no_rows = false;           // the share is empty; one row of zeros replaces it
  };
  ShareScope(Replica& replica, const Batch& share, const Options& options);
  ~ShareScope();
  ShareScope(const ShareScope&) = delete;
  ShareScope& operator=(const ShareScope&) = delete;

  /// The innermost one of this thread, or null.
  static const ShareScope* current();

  [[nodiscard]] std::uint64_t iteration() const { return options_.iteration; }
  [[nodiscard]] std::span<const std::uint64_t> sample_id() const;
  /// Like `padding_mask`.
  [[nodiscard]] torch::Tensor mask(torch::Dtype dtype, const torch::Device& device) const;
  /// The sum over all replicas of all processes, in their order.
  [[nodiscard]] torch::Tensor sum_over_replicas(const torch::Tensor& values) const;

 private:
  Replica& replica_;
  const Batch& share_;
  const Options options_;
  const ShareScope* outer_;
};

struct DropoutOptions {
  DropoutOptions(double probability = 0.5) : p(probability) {}  // NOLINT: as torch's own
  double p;
  std::uint64_t seed = 0;
};

/// Dropout whose mask depends on the sample: the same for any number of replicas, different in
/// every update. Outside a ShareScope it behaves like torch's.
class DropoutImpl : public torch::nn::Cloneable<DropoutImpl> {
 public:
  explicit DropoutImpl(const DropoutOptions& options = {});
  void reset() override {}
  torch::Tensor forward(const torch::Tensor& input);
  /// The trainer derives it from the layer's name, so that two layers differ.
  void set_layer(std::uint64_t layer) { layer_ = layer; }

 private:
  DropoutOptions options_;
  std::uint64_t layer_ = 0;
};
TORCH_MODULE(Dropout);

struct BatchNormOptions {
  BatchNormOptions(std::int64_t channels) : features(channels) {}  // NOLINT: as torch's own
  std::int64_t features;
  double eps = 1e-5;
  double momentum = 0.1;
  /// Statistics over all replicas, with true counts: equal to those of a single device.
  bool sync = false;
};

/// Batch normalization of [rows, features, ...]. Padding rows never count; an empty share changes
/// nothing and produces no NaN.
class BatchNormImpl : public torch::nn::Cloneable<BatchNormImpl> {
 public:
  explicit BatchNormImpl(const BatchNormOptions& options);
  void reset() override;
  torch::Tensor forward(const torch::Tensor& input);
  [[nodiscard]] bool sync() const { return options_.sync; }
  void set_sync(bool sync) { options_.sync = sync; }

  torch::Tensor weight, bias, running_mean, running_var;

 private:
  BatchNormOptions options_;
};
TORCH_MODULE(BatchNorm);

/// Makes every penstock BatchNorm in `module` synchronized, and returns how many there are. Throws
/// ConfigError if there is one of torch's own, which cannot be synchronized.
std::size_t sync_batch_norm(torch::nn::Module& module);

}  // namespace penstock::train
