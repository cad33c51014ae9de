#pragma once
// Batches as torch tensors.

#include <penstock/batch.h>
#include <torch/torch.h>

#include <optional>
#include <string>

namespace penstock::train {

/// The field at `path` without a copy: the tensor keeps the batch alive. For a device other than
/// the CPU it is copied there. Throws ConfigError for fields that are not numbers.
torch::Tensor tensor_of(const Batch& batch, std::string_view path,
                        const torch::Device& device = torch::kCPU);

/// 1 for samples and 0 for padding, as `dtype`; undefined if all rows are samples.
torch::Tensor padding_mask(const Batch& batch, torch::Dtype dtype,
                           const torch::Device& device = torch::kCPU);

/// The torch device of a strategy's device: all of "cpu:0", "cpu:1" ... are the CPU. Throws
/// ConfigError if there is no such GPU.
torch::Device torch_device(const std::string& device);

/// "f32[16, 3, 64, 64]"
std::string tensor_text(const torch::Tensor& tensor);

}  // namespace penstock::train
