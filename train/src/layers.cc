#include <penstock/train/layers.h>

#include <fmt/format.h>
#include <penstock/rng.h>
#include <penstock/train/process_group.h>
#include <penstock/train/tensors.h>

#include "base/mix.h"

namespace penstock::train {
namespace {

thread_local const ShareScope* innermost = nullptr;

/// The sum over replicas as part of a graph: its gradient is summed over replicas too.
class SumOverReplicas : public torch::autograd::Function<SumOverReplicas> {
 public:
  // The backward pass of a GPU runs in a torch thread, where no scope is current; it ends before
  // the scope does.
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& values) {
    const ShareScope* const scope = ShareScope::current();
    context->saved_data["scope"] = reinterpret_cast<std::int64_t>(scope);
    return scope->sum_over_replicas(values);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto scope = context->saved_data["scope"].toInt();
    return {reinterpret_cast<const ShareScope*>(scope)->sum_over_replicas(gradients[0])};
  }
};

/// [features], broadcast over [rows, features, ...].
torch::Tensor along_features(const torch::Tensor& values, std::int64_t dimensions) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dimensions), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

/// Fills the mask of one row: kept values are 1 / (1 - p).
template <typename T>
void fill_mask(std::span<T> row, std::uint64_t key, std::uint64_t number, double p) {
  const auto keep = static_cast<T>(1 / (1 - p));
  const auto threshold = static_cast<std::uint64_t>(p * 0x1.0p32);
  const std::array<std::uint32_t, 2> keys{static_cast<std::uint32_t>(key),
                                          static_cast<std::uint32_t>(key >> 32)};
  for (std::size_t at = 0; at < row.size(); at += 4) {
    const auto block =
        philox({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
                static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at >> 32)},
               keys);
    for (std::size_t i = 0; i < 4 && at + i < row.size(); ++i)
      row[at + i] = block[i] < threshold ? T{0} : keep;
  }
}

}  // namespace

ShareScope::ShareScope(Replica& replica, const Batch& share, const Options& options)
    : replica_(replica), share_(share), options_(options), outer_(innermost) {
  innermost = this;
}
ShareScope::~ShareScope() {
  innermost = outer_;
}
const ShareScope* ShareScope::current() {
  return innermost;
}

std::span<const std::uint64_t> ShareScope::sample_id() const {
  static constexpr std::array<std::uint64_t, 1> kNobody{UINT64_MAX};
  return options_.no_rows ? std::span<const std::uint64_t>(kNobody) : share_.sample_id();
}
torch::Tensor ShareScope::mask(torch::Dtype dtype, const torch::Device& device) const {
  if (options_.no_rows) return torch::zeros({1}, torch::TensorOptions(dtype).device(device));
  return padding_mask(share_, dtype, device);
}

torch::Tensor ShareScope::sum_over_replicas(const torch::Tensor& values) const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor own = values.detach().cpu().to(torch::kFloat64).contiguous();
  if (options_.group != nullptr && options_.group->world() > 1 && !options_.synchronized)
    throw ConfigError("sync_batch_norm: the others would wait for a process without rows", {},
                      "use fit, or run the layer on every process and set synchronized");
  const std::uint32_t processes = options_.group == nullptr ? 1 : options_.group->world();
  const bool alone_here = replica_.num_replicas_in_sync() == processes;
  const auto sum_here = [&](const torch::Tensor& of) {
    if (alone_here) return of;
    const std::span<const double> numbers(of.const_data_ptr<double>(),
                                          static_cast<std::size_t>(of.numel()));
    const Tensor all = replica_.sum_here(Tensor::of(numbers, {of.numel()}));
    torch::Tensor made = torch::empty_like(of);
    std::memcpy(made.data_ptr(), all.raw().data(), all.raw().size());
    return made;
  };
  torch::Tensor total = sum_here(own.flatten());
  if (processes > 1) {
    // The first replica exchanges with the other processes, and distributes the result.
    if (replica_.local_id() == 0) {
      total = total.clone();
      options_.group->sum("sync_batch_norm", total);
    } else {
      total.zero_();
    }
    total = sum_here(total);
  }
  return total.view(values.sizes()).to(values.options());
}

DropoutImpl::DropoutImpl(const DropoutOptions& options) : options_(options) {
  if (!(options.p >= 0 && options.p < 1))
    throw ConfigError(fmt::format("dropout: a probability of {}", options.p), {},
                      "it is 0 or more and below 1");
}

torch::Tensor DropoutImpl::forward(const torch::Tensor& input) {
  if (!is_training() || options_.p == 0) return input;
  const ShareScope* const scope = ShareScope::current();
  if (scope == nullptr) return torch::dropout(input, options_.p, true);
  const auto ids = scope->sample_id();
  if (input.dim() == 0 || static_cast<std::size_t>(input.size(0)) != ids.size())
    throw ConfigError(fmt::format("dropout: {} rows of a share of {}",
                                  input.dim() == 0 ? 0 : input.size(0), ids.size()),
                      {}, "keep the samples in the first dimension");
  const bool wide = input.scalar_type() == torch::kFloat64;
  torch::Tensor mask = torch::empty(input.sizes(), wide ? torch::kFloat64 : torch::kFloat32);
  const std::size_t each = ids.empty() ? 0 : static_cast<std::size_t>(mask.numel()) / ids.size();
  const std::uint64_t key = combine(combine(options_.seed, layer_), scope->iteration());
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (wide) {
      fill_mask(std::span(mask.data_ptr<double>() + row * each, each), key, ids[row], options_.p);
    } else {
      fill_mask(std::span(mask.data_ptr<float>() + row * each, each), key, ids[row], options_.p);
    }
  }
  return input * mask.to(input.options());
}

BatchNormImpl::BatchNormImpl(const BatchNormOptions& options) : options_(options) {
  reset();
}

void BatchNormImpl::reset() {
  const std::int64_t features = options_.features;
  weight = register_parameter("weight", torch::ones({features}));
  bias = register_parameter("bias", torch::zeros({features}));
  running_mean = register_buffer("running_mean", torch::zeros({features}));
  running_var = register_buffer("running_var", torch::ones({features}));
}

torch::Tensor BatchNormImpl::forward(const torch::Tensor& input) {
  const std::int64_t dims = input.dim();
  if (dims < 2 || input.size(1) != options_.features)
    throw ConfigError(fmt::format("batch norm of {} features was given {}", options_.features,
                                  tensor_text(input)),
                      {}, "features are the second dimension");
  const auto wide = [&](const torch::Tensor& values) { return along_features(values, dims); };
  if (!is_training())
    return (input - wide(running_mean)) * wide(torch::rsqrt(running_var + options_.eps) * weight) +
           wide(bias);

  const ShareScope* const scope = ShareScope::current();
  const bool sync = options_.sync && scope != nullptr;
  std::vector<std::int64_t> others{0};
  for (std::int64_t d = 2; d < dims; ++d) others.push_back(d);
  torch::Tensor mask =
      scope == nullptr ? torch::Tensor() : scope->mask(input.scalar_type(), input.device());
  std::int64_t rows = input.size(0);
  if (mask.defined()) {
    rows = mask.sum().item<std::int64_t>();
    std::vector<std::int64_t> shape(static_cast<std::size_t>(dims), 1);
    shape[0] = input.size(0);
    mask = mask.view(shape);
  }
  const auto masked = [&](const torch::Tensor& x) { return mask.defined() ? x * mask : x; };
  const auto total = [&](const torch::Tensor& x) { return sync ? SumOverReplicas::apply(x) : x; };

  const double own =
      static_cast<double>(rows) *
      static_cast<double>(input.numel() / std::max<std::int64_t>(1, input.size(0) * input.size(1)));
  double count = own;
  if (sync) {
    const auto all = scope->sum_over_replicas(torch::full({1}, own, torch::kFloat64));
    count = all.item<double>();
  }
  if (count == 0) return masked(input);  // no replica has a row: there is nothing to learn
  // Two passes, since the difference of squares cancels what the rows have in common.
  const torch::Tensor mean = total(masked(input).sum(others)) / count;
  const torch::Tensor centered = masked(input - wide(mean));
  const torch::Tensor variance = total(centered.square().sum(others)) / count;
  {
    const torch::NoGradGuard no_grad;
    const double unbiased = count > 1 ? count / (count - 1) : 1;
    running_mean.lerp_(mean.to(running_mean.scalar_type()), options_.momentum);
    running_var.lerp_(variance.to(running_var.scalar_type()) * unbiased, options_.momentum);
  }
  return centered * wide(torch::rsqrt(variance + options_.eps) * weight) + wide(bias);
}

std::size_t sync_batch_norm(torch::nn::Module& module) {
  std::size_t found = 0;
  for (const auto& item : module.named_modules("")) {
    if (item.value()->name().find("BatchNorm") == std::string::npos) continue;
    auto* const ours = item.value()->as<BatchNormImpl>();
    if (ours == nullptr)
      throw ConfigError(
          fmt::format("sync_batch_norm: {} is torch's {}, which works on one replica only",
                      item.key(), item.value()->name()),
          {}, "use penstock::train::BatchNorm there");
    ours->set_sync(true);
    ++found;
  }
  return found;
}

}  // namespace penstock::train
