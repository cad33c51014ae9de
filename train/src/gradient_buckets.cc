#include "gradient_buckets.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

namespace penstock::train {

GradientBuckets::GradientBuckets(std::vector<std::vector<torch::Tensor>> parameters,
                                 ProcessGroup* group, std::size_t bucket_bytes)
    : parameters_(std::move(parameters)), group_(group) {
  const auto& first = parameters_.front();
  bucket_of_.resize(first.size());
  std::size_t bytes = 0;
  // A backward pass finishes the last layers first.
  for (std::size_t i = first.size(); i-- > 0;) {
    const bool fits = !buckets_.empty() && bytes + first[i].nbytes() <= bucket_bytes &&
                      first[buckets_.back()->parameters.front()].dtype() == first[i].dtype();
    if (!fits) {
      buckets_.push_back(std::make_unique<Bucket>());
      bytes = 0;
    }
    bytes += first[i].nbytes();
    bucket_of_[i] = buckets_.size() - 1;
    buckets_.back()->parameters.push_back(i);
  }
  for (const auto& own : parameters_) {
    auto& flats = flats_.emplace_back();
    auto& views = views_.emplace_back(own.size());
    for (const auto& bucket : buckets_) {
      std::int64_t count = 0;
      for (const std::size_t i : bucket->parameters) count += own[i].numel();
      flats.push_back(torch::zeros({count}, own[bucket->parameters.front()].options()));
      std::int64_t at = 0;
      for (const std::size_t i : bucket->parameters) {
        views[i] = flats.back().narrow(0, at, own[i].numel()).view(own[i].sizes());
        at += own[i].numel();
      }
    }
  }
  is_ready_.assign(parameters_.size(), std::vector<std::uint8_t>(first.size()));
  add_hooks();
}

void GradientBuckets::add_hooks() {
  using torch::autograd::variable_list;
  for (std::size_t replica = 0; replica < parameters_.size(); ++replica)
    for (std::size_t i = 0; i < parameters_[replica].size(); ++i) {
      // The accumulator, and with it the hook, lives only while something references it.
      auto accumulator = torch::autograd::impl::grad_accumulator(parameters_[replica][i]);
      const auto hook = [this, replica, i](const variable_list& outputs, const variable_list&) {
        if (armed_.load(std::memory_order_acquire)) ready(replica, i);
        return outputs;
      };
      const auto key = accumulator->add_post_hook(
          std::make_unique<torch::autograd::utils::LambdaPostHook>(hook));
      remove_hooks_.emplace_back([accumulator, key] { accumulator->del_post_hook(key); });
    }
}

GradientBuckets::~GradientBuckets() {
  for (const auto& remove : remove_hooks_) remove();
}

void GradientBuckets::begin() {
  armed_ = false;
  for (auto& flags : is_ready_) std::ranges::fill(flags, std::uint8_t{0});
  for (const auto& bucket : buckets_)
    bucket->missing = bucket->parameters.size() * parameters_.size();
  Lock lock(mutex_);
  summed_.assign(buckets_.size(), false);
  sent_ = 0;
}

void GradientBuckets::clear(std::size_t replica) {
  for (torch::Tensor& flat : flats_[replica]) flat.zero_();
  for (std::size_t i = 0; i < parameters_[replica].size(); ++i)
    parameters_[replica][i].mutable_grad() = views_[replica][i];
}

void GradientBuckets::arm() {
  armed_ = true;
}

void GradientBuckets::ready(std::size_t replica, std::size_t parameter) {
  if (std::exchange(is_ready_[replica][parameter], std::uint8_t{1}) != 0) return;
  // A backward pass that was told to create a new gradient tensor has replaced ours.
  const torch::Tensor& grad = parameters_[replica][parameter].grad();
  if (grad.defined() && !grad.is_same(views_[replica][parameter])) {
    const torch::NoGradGuard no_grad;
    if (grad.data_ptr() != views_[replica][parameter].data_ptr())
      views_[replica][parameter].copy_(grad);
  }
  const std::size_t bucket = bucket_of_[parameter];
  if (buckets_[bucket]->missing.fetch_sub(1, std::memory_order_acq_rel) == 1) sum(bucket);
}

void GradientBuckets::finish(std::size_t replica) {
  for (std::size_t i = 0; i < parameters_[replica].size(); ++i)
    if (is_ready_[replica][i] == 0) ready(replica, i);
}

void GradientBuckets::sum(std::size_t bucket) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& total = flats_.front()[bucket];
  for (std::size_t r = 1; r < flats_.size(); ++r)
    total.add_(flats_[r][bucket].to(total.device(), /*non_blocking=*/false));
  if (when_summed) when_summed(bucket);
  if (group_ == nullptr) return;
  // All processes send in the order of the buckets, whatever order they finish in.
  Lock lock(mutex_);
  summed_[bucket] = true;
  for (; sent_ < summed_.size() && summed_[sent_]; ++sent_)
    group_->start_sum(fmt::format("sum of gradients, part {} of {}", sent_ + 1, summed_.size()),
                      flats_.front()[sent_]);
}

void GradientBuckets::complete() {
  armed_ = false;
  if (group_ != nullptr) group_->finish_sums();
}

void GradientBuckets::scale(double factor) {
  const torch::NoGradGuard no_grad;
  if (factor == 1) return;
  for (torch::Tensor& flat : flats_.front()) flat.mul_(factor);
}

void GradientBuckets::adopt(std::size_t replica) {
  if (replica == 0) return;
  const torch::NoGradGuard no_grad;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const bool same_device = flats_[0][b].device() == flats_[replica][b].device();
    if (!same_device) flats_[replica][b].copy_(flats_[0][b]);
    for (const std::size_t i : buckets_[b]->parameters)
      parameters_[replica][i].mutable_grad() = same_device ? views_[0][i] : views_[replica][i];
  }
}

}  // namespace penstock::train
