#pragma once
// One copy of a network on every replica of a strategy. The copies stay equal: the same initial
// values, and updates with the same gradient, summed in replica order and divided once by the
// number of samples of the step. For custom loops:
//
//   Mirrored net(strategy, Net(), {.optimizer = sgd(0.1)});
//   while (auto step = feed.next()) {
//     auto losses = strategy.run([&](Replica& replica, const Batch& share) {
//       auto loss = per_sample_loss(net[replica].forward({tensor_of(share, "x")}), ...).sum();
//       loss.backward();                                   // the sum over the share, not its mean
//       return Counted<double>{loss.item<double>(), share.valid_count()};
//     }, *step);
//     net.update(*step);
//   }

#include <penstock/strategy.h>
#include <penstock/train/network.h>
#include <penstock/train/optimizer.h>

#include <functional>
#include <memory>

namespace penstock::train {

class GradientBuckets;
class ProcessGroup;

struct MirroredOptions {
  OptimizerSpec optimizer = adam();
  Schedule schedule = {};  // overrides the optimizer's rate
  double clip_norm = 0;    // of the gradient of the whole step; 0: not clipped
  double clip_value = 0;
  /// Added once to the loss of the whole step, for any number of replicas.
  std::function<torch::Tensor(torch::nn::Module&)> regularizer = {};
  bool sync_batch_norm = false;
  /// Compares the copies every so many updates; 0: only in `check_equal`. The default is 0 in
  /// release builds and 100 in others.
#ifdef NDEBUG
  std::uint64_t check_every = 0;
#else
  std::uint64_t check_every = 100;
#endif
};

class Mirrored {
 public:
  /// Throws ConfigError if the network cannot be copied, a device is missing, or the processes have
  /// different networks.
  Mirrored(Strategy& strategy, const Network& network, const MirroredOptions& options);
  ~Mirrored();
  Mirrored(const Mirrored&) = delete;
  Mirrored& operator=(const Mirrored&) = delete;

  [[nodiscard]] Strategy& strategy() const;
  [[nodiscard]] const Network& operator[](const Replica& replica) const;
  [[nodiscard]] const Network& copy(std::size_t local_replica) const;
  [[nodiscard]] const torch::Device& device(std::size_t local_replica) const;

  /// Call after a run in which every replica with rows has added the gradient of the *sum* of its
  /// losses. Updates all copies with the gradient of the mean over the step.
  void update(const Step& step);

  [[nodiscard]] std::uint64_t iterations() const;
  [[nodiscard]] double learning_rate() const;
  /// From now on, instead of the rate of the optimizer and the schedule.
  void set_learning_rate(double rate);
  /// Throws InternalError naming the replicas whose parameters differ.
  void check_equal();
  /// Replaces buffers such as running means by their mean over all replicas, in replica order.
  void merge_buffers();

  // For the trainer: the phases of one update, called inside Strategy::each.
  struct Outcome {
    double factor = 1;  // multiplies the sums
    bool apply = true;  // false: the gradient is discarded
  };
  void begin();  // outside each
  void clear(Replica& replica);
  void arm();  // outside each
  /// `decide` runs on the first replica, once all gradients are there.
  void reduce_and_apply(Replica& replica, const std::function<Outcome()>& decide);
  void finish_update();  // outside each
  /// What the regularizer gave in the last update; now, where `fresh`.
  [[nodiscard]] double penalty(bool fresh = false) const;
  [[nodiscard]] ProcessGroup* group() const;
  [[nodiscard]] bool synchronized() const;  // replicas without rows must run, too

  // For checkpoints
  /// Identifies this training run; random, or taken from a checkpoint.
  [[nodiscard]] const std::string& run() const;
  void set_run(const std::string& run);
  [[nodiscard]] NamedTensors values() const;
  [[nodiscard]] NamedTensors optimizer_values();
  /// Errors name `what`.
  void restore(const std::string& what, const NamedTensors& values,
               const NamedTensors& optimizer_values, std::uint64_t iterations);
  [[nodiscard]] GradientBuckets& buckets() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::train
