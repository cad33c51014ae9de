#pragma once
// Small networks and uneven data for tests.

#include <penstock/train.h>

#include <random>

namespace penstock::train {

/// `count` points of `width` numbers with a target that depends on them, as {x: f64, y: f64}.
inline Dataset points(std::int64_t count, std::int64_t width = 5, Dtype dtype = Dtype::f64) {
  std::mt19937_64 random(17);
  std::normal_distribution<double> normal;
  std::vector<double> x(static_cast<std::size_t>(count * width));
  std::vector<double> y(static_cast<std::size_t>(count));
  for (double& value : x) value = normal(random);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto at = i * static_cast<std::size_t>(width);
    y[i] = std::sin(x[at]) + 0.5 * x[at + 1] * x[at + 2] + 0.1 * normal(random);
  }
  const auto tensor = [dtype](const std::vector<double>& values, Shape shape) {
    if (dtype == Dtype::f64) return Tensor::of(std::span<const double>(values), std::move(shape));
    const std::vector<float> floats(values.begin(), values.end());
    return Tensor::of(std::span<const float>(floats), std::move(shape));
  };
  return Dataset::from_tensor_slices(
      Sample::dict({{"x", tensor(x, {count, width})}, {"y", tensor(y, {count})}}));
}

/// Two layers; dropout and batch norm of ours where asked for.
struct SmallNetImpl : torch::nn::Cloneable<SmallNetImpl> {
  SmallNetImpl(std::int64_t width = 5, bool dropout = false, bool norm = false)
      : width_(width), with_dropout_(dropout), with_norm_(norm) {
    reset();
  }
  void reset() override {
    first = register_module("first", torch::nn::Linear(width_, 16));
    last = register_module("last", torch::nn::Linear(16, 1));
    if (with_norm_) norm_ = register_module("norm", BatchNorm(BatchNormOptions(16)));
    if (with_dropout_) dropout_ = register_module("dropout", Dropout(DropoutOptions(0.3)));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = first->forward(x);
    if (with_norm_) x = norm_->forward(x);
    x = torch::tanh(x);
    if (with_dropout_) x = dropout_->forward(x);
    return last->forward(x);
  }
  torch::nn::Linear first{nullptr}, last{nullptr};

 private:
  std::int64_t width_;
  bool with_dropout_;
  bool with_norm_;
  Dropout dropout_{nullptr};
  BatchNorm norm_{nullptr};
};
TORCH_MODULE(SmallNet);

/// The same first weights each time.
inline SmallNet small_net(bool dropout = false, bool norm = false,
                          torch::Dtype dtype = torch::kFloat64) {
  torch::manual_seed(3);
  SmallNet net(5, dropout, norm);
  net->to(dtype);
  return net;
}

inline std::vector<std::string> cpus(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("cpu:" + std::to_string(i));
  return names;
}

/// All parameters in one row.
inline torch::Tensor weights(const Network& network) {
  std::vector<torch::Tensor> flat;
  for (const auto& value : network.module().parameters())
    flat.push_back(value.detach().flatten().to(torch::kFloat64));
  return torch::cat(flat);
}

/// max|a - b| / max|a|
inline double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs().max() / a.abs().max()).item<double>();
}

}  // namespace penstock::train
