#pragma once
// Sums between the GPUs of several processes, by NCCL. Needs a torch with CUDA: in other builds
// `gpu_identity` is always empty, and the rest is not called.

#include <torch/torch.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace penstock::train {

/// Identifies the GPU `device` and its host in the same way on every process; empty if it is not a
/// GPU or this build has no NCCL.
[[nodiscard]] std::string gpu_identity(const torch::Device& device);

/// Blocks until all ranks have joined with one GPU each. Has no time limit (NCCL's own fails in its
/// exchanges of parts), so all ranks must have been there a moment before.
[[nodiscard]] c10::intrusive_ptr<c10d::Backend> connect_nccl(
    const c10::intrusive_ptr<c10d::Store>& store, std::uint32_t rank, std::uint32_t world,
    const torch::Device& device);

/// Blocks until the GPU has finished; throws std::runtime_error if that fails or takes longer.
void wait_for_gpu(c10d::Work& work, std::chrono::milliseconds timeout);

}  // namespace penstock::train
