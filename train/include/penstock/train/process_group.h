#pragma once
// Processes that train together, started by torchrun or another launcher. They rendezvous through a
// TCPStore and communicate by Gloo, GPUs by NCCL. A wait for a missing rank ends within the timeout
// with an error that names it; a wait for ranks that are alive but slow continues and is reported.

#include <penstock/coordinator.h>
#include <penstock/strategy.h>
#include <torch/torch.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace penstock::train {

/// A process of the group died, left, or lost its connection. The message names it.
class LostRankError : public Error {
 public:
  using Error::Error;
};

struct ProcessGroupOptions {
  /// For every exchange with a missing rank.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  /// For every exchange while all ranks are alive: one may be saving to a slow disk. After that
  /// they are assumed to be in a deadlock. (torch's own default is half an hour for both.)
  std::chrono::milliseconds alive_timeout = std::chrono::hours(1);
  /// For the rendezvous at the start: the processes may have been started one by one.
  std::chrono::milliseconds join_timeout = std::chrono::minutes(2);
  /// Where rank 0 listens; by default MASTER_ADDR and MASTER_PORT, which torchrun sets.
  std::string address = {};
  std::uint16_t port = 0;
};

class ProcessGroup final : public Coordinator {
 public:
  /// Blocks until all ranks that the launcher started have joined. Throws ConfigError if the
  /// environment is incomplete or a rank joins twice, LostRankError if one does not join.
  explicit ProcessGroup(const ProcessGroupOptions& options = {});
  ~ProcessGroup() override;
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  [[nodiscard]] std::uint32_t rank() const override;
  [[nodiscard]] std::uint32_t world() const override;
  [[nodiscard]] std::vector<std::string> gather(const std::string& word,
                                                const std::string& text) override;

  /// Collective. Sets the device of the tensors of `start_sum`: between GPUs the sums use NCCL if
  /// every rank has its own GPU and torch was built with CUDA, else the CPU.
  void use_device(const torch::Device& device);
  /// Replaces `values` by the sum over all ranks, added in rank order: bit-identical on every rank
  /// and in every run. Blocks until all ranks have called it.
  void sum(const std::string& word, torch::Tensor values);
  /// The same, in the background and in the order of the calls. `values` must not be accessed
  /// before `finish_sums`, which blocks until all sums are done and rethrows errors.
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
/// Must precede Strategy among the base classes, since Strategy needs the group.
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
