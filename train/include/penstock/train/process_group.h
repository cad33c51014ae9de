#pragma once
// Processes that train together, started by torchrun or another launcher. They meet through a
// TCPStore and talk by Gloo, and GPUs by NCCL. A wait for a rank that is missing ends within the
// timeout and names it; a wait for ranks that are alive and slow goes on, and is reported.

#include <penstock/strategy.h>
#include <torch/torch.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/coordinator.h"

namespace penstock::train {

/// A process of the group died, left, or is cut off. The message names it.
class LostRankError : public Error {
 public:
  using Error::Error;
};

struct ProcessGroupOptions {
  /// For every exchange with a rank that is missing.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  /// For every exchange while all ranks are alive: one may be saving to a slow disk. Beyond it they
  /// are taken to wait for each other. (torch's own default is half an hour for both.)
  std::chrono::milliseconds alive_timeout = std::chrono::hours(1);
  /// For the processes to come together at the start: they may have been started one by one.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(2);
  /// Where rank 0 listens; MASTER_ADDR and MASTER_PORT by default, which torchrun sets.
  std::string address = {};
  std::uint16_t port = 0;
};

class ProcessGroup final : public Coordinator {
 public:
  /// Waits for all ranks that the launcher started. Throws ConfigError when the environment is
  /// incomplete or a rank is there twice, LostRankError when one does not come.
  explicit ProcessGroup(const ProcessGroupOptions& options = {});
  ~ProcessGroup() override;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  [[nodiscard]] std::uint32_t rank() const override;
  [[nodiscard]] std::uint32_t world() const override;
  [[nodiscard]] std::vector<std::string> gather(const std::string& word,
                                                const std::string& text) override;

  /// Collective. Tells where the tensors of `start_sum` will lie: between GPUs they go by NCCL if
  /// every rank has a GPU of its own and torch was built with CUDA, else through the CPU.
  void use_device(const torch::Device& device);
  /// Replaces `values` by the sum over all ranks, added in rank order: the same bits on every rank
  /// and in every run.
  void sum(const std::string& word, torch::Tensor values);
  /// The same, in the background and in the order of the calls; `values` must not be touched
  /// before `finish_sums`, which waits for all and throws what went wrong.
  void start_sum(const std::string& word, torch::Tensor values);
  void finish_sums();
  /// The values or the text of rank 0.
  void broadcast(const std::string& word, torch::Tensor values);
  [[nodiscard]] std::string broadcast(const std::string& word, const std::string& text);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

namespace detail {
/// Comes before Strategy among the bases of a strategy, since that needs the group.
struct GroupHolder {
  explicit GroupHolder(const ProcessGroupOptions& options) : group(options) {}
  ProcessGroup group;
};
}  // namespace detail

/// One process of several, each with one or more replicas.
class MultiWorkerMirroredStrategy final : private detail::GroupHolder, public Strategy {
 public:
  explicit MultiWorkerMirroredStrategy(const std::vector<std::string>& devices = {"cpu:0"},
                                       const ProcessGroupOptions& options = {});
  [[nodiscard]] ProcessGroup& group() { return GroupHolder::group; }
};

}  // namespace penstock::train
