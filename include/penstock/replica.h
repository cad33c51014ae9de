#pragma once

#include <cstdint>
#include <string>

#include <penstock/detail/replica_value.h>
#include <penstock/reduce.h>
#include <penstock/tensor.h>

namespace penstock {

class Team;

/// The replica on which `Strategy::run` calls a function. Valid only during that call, and only in
/// its thread.
class Replica {
 public:
  /// The number of this replica among all replicas, and among those of this process.
  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] std::uint32_t local_id() const { return local_id_; }
  [[nodiscard]] std::uint32_t num_replicas_in_sync() const { return replicas_; }
  [[nodiscard]] const std::string& device() const { return device_; }
  /// Samples of this replica's share.
  [[nodiscard]] std::uint64_t count() const { return count_; }

  // Collectives. All replicas with rows must call them, in the same order. They block until all
  // have. They throw CancelledError if another replica has failed, and ConfigError if another
  // replica calls a different collective or returns without calling it, if they are called in
  // another thread, and (except `sum_here`) if the strategy spans several processes.
  /// The sum, or the mean over all samples, of every replica's value.
  template <typename T>
  [[nodiscard]] auto all_reduce(Reduce op, const T& value) {
    using Inner = typename detail::IsCounted<T>::Inner;
    return detail::ReplicaValue<Inner>::value(all_reduce_part(op, detail::part_of(value, count_)));
  }
  /// Waits for all replicas with rows.
  void barrier();
  /// The sum over the replicas of this process only, added in replica order.
  [[nodiscard]] Tensor sum_here(const Tensor& value);
  /// True if another replica has failed, so that the result of this one will be discarded. Does not
  /// block; long functions may poll it.
  [[nodiscard]] bool cancelled() const;

  /// The replica that runs in this thread. Throws ConfigError outside `run`, where there is none:
  /// `distribute` cuts the data, never shard it by replica number.
  static Replica& current();

 private:
  friend class Strategy;
  Replica() = default;
  Tensor all_reduce_part(Reduce op, const detail::Part& part);
  void expect_own_thread(const char* word) const;
  void expect_one_process(const char* word) const;

  std::uint32_t id_ = 0;
  std::uint32_t local_id_ = 0;
  std::uint32_t replicas_ = 1;
  std::string device_;
  std::uint64_t count_ = 0;
  Team* team_ = nullptr;
  bool one_process_ = true;
};

}  // namespace penstock
