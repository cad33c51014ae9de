#pragma once
// Sums the gradients of the copies of one model. Parameters are in buckets, in the order in which a
// backward pass finishes them. When the last replica has finished a bucket, its sum is computed, in
// replica order, while the others are still in their backward pass, and sent to the other
// processes. So the result does not depend on which replica was first.

#include <penstock/train/process_group.h>
#include <torch/torch.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"

namespace penstock::train {

class GradientBuckets {
 public:
  /// `parameters[r]` are those of replica r, in the same order for all.
  GradientBuckets(std::vector<std::vector<torch::Tensor>> parameters, ProcessGroup* group,
                  std::size_t bucket_bytes = std::size_t{8} << 20);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // In order, for each update:
  /// In one thread: discards what remains of the last update.
  void begin();
  /// In each replica's thread: zeroes its gradients.
  void clear(std::size_t replica);
  /// In one thread, before the backward pass that completes the gradients.
  void arm();
  /// In each replica's thread: parameters that its backward pass has not reached count unchanged. A
  /// replica that computed nothing calls it at once.
  void finish(std::size_t replica);
  /// In one thread, after all have finished: blocks until the sums of all processes have arrived.
  void complete();
  /// In one thread: multiplies the sums by `factor`.
  void scale(double factor);
  /// In each replica's thread: sets the gradients of its parameters to the sums.
  void adopt(std::size_t replica);

  /// The sums, one flat tensor for each bucket.
  [[nodiscard]] const std::vector<torch::Tensor>& sums() const { return flats_.front(); }
  /// Called with the number of a bucket when its sum is computed; for tests of the overlap.
  std::function<void(std::size_t bucket)> when_summed = {};

 private:
  struct Bucket {
    std::vector<std::size_t> parameters;
    std::atomic<std::size_t> missing = 0;
  };
  void ready(std::size_t replica, std::size_t parameter);
  void sum(std::size_t bucket);
  void add_hooks();

  std::vector<std::vector<torch::Tensor>> parameters_;
  ProcessGroup* group_;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::vector<std::size_t> bucket_of_;               // by parameter
  std::vector<std::vector<torch::Tensor>> flats_;    // by replica and bucket
  std::vector<std::vector<torch::Tensor>> views_;    // by replica and parameter, into flats_
  std::vector<std::vector<std::uint8_t>> is_ready_;  // by replica and parameter
  std::atomic<bool> armed_ = false;
  std::vector<std::function<void()>> remove_hooks_;

  Mutex mutex_;
  std::vector<bool> summed_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t sent_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock::train
