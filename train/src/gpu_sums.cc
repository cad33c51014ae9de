// tested in train/tests/workers.py
// with --device cuda, on a machine that has one; without a GPU this file is empty.
#include "gpu_sums.h"

#ifdef PENSTOCK_NCCL

#include <ATen/cuda/CUDAContext.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace penstock::train {
namespace {

/// NCCL distinguishes hosts by this name too, so that both agree on what one GPU is.
std::string host_name() {
  if (const char* const given = std::getenv("NCCL_HOSTID")) return given;
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

std::string gpu_identity(const torch::Device& device) {
  if (!device.is_cuda()) return "";
  const cudaDeviceProp& facts = *at::cuda::getDeviceProperties(device.index());
  return fmt::format("{} {:04x}:{:02x}:{:02x}", host_name(), facts.pciDomainID, facts.pciBusID,
                     facts.pciDeviceID);
}

c10::intrusive_ptr<c10d::Backend> connect_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                               std::uint32_t rank, std::uint32_t world,
                                               const torch::Device& device) {
  // By default torch ends the whole process when a peer is lost. We detect it, name the peer, and
  // let the program continue.
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", 0);
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", 0);
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::hours(24);  // wait_for_gpu has the limit
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, static_cast<int>(rank),
                                                             static_cast<int>(world), options);
  backend->eagerConnectSingleDevice(device);
  return backend;
}

void wait_for_gpu(c10d::Work& work, std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!work.isCompleted()) {
    if (std::chrono::steady_clock::now() > until)
      throw std::runtime_error(fmt::format("no answer within {} s", timeout.count() / 1000));
    ::sched_yield();
  }
  if (const std::exception_ptr failure = work.exception()) std::rethrow_exception(failure);
  work.wait();  // orders this thread's stream after it
}

}  // namespace penstock::train

#else

namespace penstock::train {

std::string gpu_identity(const torch::Device&) {
  return "";
}
c10::intrusive_ptr<c10d::Backend> connect_nccl(const c10::intrusive_ptr<c10d::Store>&,
                                               std::uint32_t, std::uint32_t, const torch::Device&) {
  return {};
}
void wait_for_gpu(c10d::Work&, std::chrono::milliseconds) {}

}  // namespace penstock::train

#endif
