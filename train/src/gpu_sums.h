#pragma once
// Sums between the GPUs of several processes, by NCCL. Only a torch with CUDA has it: in other
// builds `gpu_identity` is always empty, and nobody asks for the rest.

#include <torch/torch.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace penstock::train {

/// Which GPU of which host `device` is, in words that every process would use for it; empty where
/// it is no GPU or this build has no NCCL.
[[nodiscard]] std::string gpu_identity(const torch::Device& device);

/// Waits until all ranks have come with a GPU each. Has no bound of its own (what NCCL offers for
/// that fails in its exchanges of parts), so that all must have been there a moment before.
[[nodiscard]] c10::intrusive_ptr<c10d::Backend> connect_nccl(
    const c10::intrusive_ptr<c10d::Store>& store, std::uint32_t rank, std::uint32_t world,
    const torch::Device& device);

/// Blocks until the GPU has done it; throws std::runtime_error when that fails or takes longer.
void wait_for_gpu(c10d::Work& work, std::chrono::milliseconds timeout);

}  // namespace penstock::train
