#pragma once
// Replicas: several devices that take every step together, each on its share of the global batch.
//
//   MirroredStrategy strategy({"cpu:0", "cpu:1"});
//   auto feed = strategy.distribute(dataset);
//   while (auto step = feed.next()) {
//     auto losses = strategy.run([&](Replica&, const Batch& share) { return loss(share); }, *step);
//     double mean = strategy.reduce(Reduce::mean, losses);
//   }
//
// A step runs on all replicas or on none. The function is called for every share that has rows; a
// replica whose share is empty computes nothing and counts as zero of zero samples in every
// reduction. Sums are added in replica order, so that a rerun is bit-identical.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/batch.h>
#include <penstock/clock.h>
#include <penstock/coordinator.h>
#include <penstock/dataset.h>
#include <penstock/detail/replica_value.h>
#include <penstock/feed.h>
#include <penstock/per_replica.h>
#include <penstock/reduce.h>
#include <penstock/replica.h>
#include <penstock/scope.h>
#include <penstock/step.h>

namespace penstock {

/// One of several processes.
struct ProcessRank {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
};

struct StrategyOptions {
  /// Connects the processes that train together, each with the same number of replicas. Must
  /// outlive the strategy.
  Coordinator* coordinator = nullptr;
  /// The rank of this process. Default: that of the coordinator or, without one, of the launcher
  /// (torchrun, TF_CONFIG, srun, Open MPI, a Kubernetes Job).
  std::optional<ProcessRank> process = {};
  /// If the others wait this long for a replica, a report names it.
  std::chrono::milliseconds stall_after = std::chrono::seconds(30);
  Clock* clock = nullptr;  // for tests
  /// Called repeatedly by replicas that wait for others, without locks held. If it throws in the
  /// thread that called `run`, the step ends with that exception. A replica that is still inside
  /// its function half a second later is abandoned, so the function must own everything it touches.
  std::function<void()> while_waiting = {};
};

/// The replicas of this process and, with a coordinator or launcher, of others.
///
/// Use it from one thread at a time: `run` and `each` throw ConfigError while another thread is in
/// one of them. The replicas' threads start with the first `run` and are joined in the destructor.
/// `run`, `each`, `distribute` and
/// `distribute_from_function` throw ConfigError inside a function that `run` calls.
class Strategy {
 public:
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  virtual ~Strategy();

  /// Number of replicas in all processes.
  [[nodiscard]] std::uint32_t num_replicas_in_sync() const;
  /// The devices of this process, one per replica, such as "cpu:0".
  [[nodiscard]] const std::vector<std::string>& devices() const;
  /// Makes this strategy the current one of the calling thread, until the Scope ends.
  [[nodiscard]] Scope scope();
  /// The strategy of the innermost open scope of this thread, or of the replica that runs in it;
  /// nullptr if there is none.
  static Strategy* current();

  /// Returns a feed that cuts each global batch for the replicas. Runs select() predicates like the
  /// constructor of Loader. With a coordinator it blocks until all processes have called it. Throws
  /// ConfigError if the plan cannot work, if an epoch would have no end, if `options.loader.shares`
  /// is set, or if the plans of the processes differ.
  [[nodiscard]] Feed distribute(const Dataset& dataset, const DistributeOptions& options = {});
  /// Like `distribute`, for the dataset that `make` returns; `batch(b)` in it is the batch of one
  /// replica. Calls `make` once, in the calling thread.
  [[nodiscard]] Feed distribute_from_function(
      const std::function<Dataset(const InputContext&)>& make,
      const DistributeOptions& options = {});
  template <typename Other>
    requires(!std::convertible_to<const Other&, const Dataset&>)
  void distribute(const Other&, const DistributeOptions& = {}) {
    static_assert(!std::same_as<Other, Other>,
                  "distribute takes a Dataset; a Feed is distributed already");
  }

  /// Calls `fn(Replica&, const Batch& share)` for each share that has rows, one thread per replica,
  /// the first in the calling thread. Blocks until all have returned, and returns their results per
  /// replica. If a replica throws, the others are cancelled at their next collective, the first
  /// exception (by time) is rethrown unchanged, the others are reported, and the strategy can be
  /// used again. Throws ConfigError for a step of another strategy.
  template <typename F>
  auto run(F&& fn, const Step& step) {
    static_assert(std::invocable<F&, Replica&, const Batch&>,
                  "run calls fn(Replica&, const Batch& share)");
    using T = std::remove_cvref_t<std::invoke_result_t<F&, Replica&, const Batch&>>;
    if constexpr (std::is_void_v<T> && std::is_lvalue_reference_v<F>) {
      run_step(step, [&fn](Replica& replica, const Batch& share) { fn(replica, share); });
    } else if constexpr (std::is_void_v<T>) {
      // Owned, so that an abandoned replica still has its function.
      const auto own = std::make_shared<std::remove_cvref_t<F>>(std::forward<F>(fn));
      run_step(step, [own](Replica& replica, const Batch& share) { (*own)(replica, share); });
    } else {
      PerReplica<T> result(step.counts());
      run_step(step, [&fn, &result](Replica& replica, const Batch& share) {
        result.values_[replica.local_id()].emplace(fn(replica, share));
      });
      return result;
    }
  }
  template <typename F, typename Other>
    requires(!std::convertible_to<const Other&, const Step&>)
  void run(F&&, const Other&) {
    static_assert(!std::same_as<Other, Other>,
                  "run takes a Step, as `while (auto step = feed.next())` gives it for a feed made "
                  "by strategy.distribute(dataset); pass *step. A Batch or Dataset that was not "
                  "distributed would be computed once per replica");
  }

  /// Calls `fn(Replica&)` on every replica of this process, also those without rows: for work that
  /// keeps the replicas equal, such as updating their weights. Blocks and throws like `run`.
  void each(const std::function<void(Replica&)>& fn);

  // Reductions over the replicas of all processes. With several processes, every process must call
  // them, and they block until all have; they throw ConfigError without a coordinator.
  /// Adds the values of all replicas, or averages them over their samples. A plain value counts as
  /// the mean over its replica's share and is weighted by its number of samples; a Counted value is
  /// a sum, and the mean divides once. Throws ConfigError for the mean of no samples or of
  /// integers.
  template <typename T>
  [[nodiscard]] auto reduce(Reduce op, const PerReplica<T>& value) const {
    return detail::ReplicaValue<typename detail::IsCounted<T>::Inner>::value(
        reduced(op, value.parts()));
  }
  /// The same along an axis of the values: with axis 0 a vector has one value per sample, and its
  /// mean divides by the number of samples in all replicas.
  template <typename T>
  [[nodiscard]] auto reduce(Reduce op, const PerReplica<T>& value, std::int64_t axis) const {
    using Row = typename detail::ReplicaValue<T>::Row;
    static_assert(!std::is_void_v<Row>, "a number has no axis: reduce it without one");
    return detail::ReplicaValue<Row>::value(reduced(op, value.parts(), axis));
  }
  /// Concatenates the values of all replicas along `axis`, without padding rows.
  template <typename T>
  [[nodiscard]] auto gather(const PerReplica<T>& value, std::int64_t axis = 0) const {
    return detail::ReplicaValue<typename detail::ReplicaValue<T>::All>::value(
        gathered(value.parts(), axis));
  }
  /// Returns `fn(number of the replica)` for each replica of this process. Calls `fn` in the
  /// calling thread.
  template <typename F>
  [[nodiscard]] auto per_replica(F&& fn) const {
    std::vector<std::invoke_result_t<F&, std::uint32_t>> values;
    for (std::uint32_t r = 0; r < devices().size(); ++r) values.push_back(fn(first_replica() + r));
    return PerReplica(std::move(values));
  }

 protected:
  Strategy(const char* word, const std::vector<std::string>& devices,
           const StrategyOptions& options);

 private:
  void run_step(const Step& step, const std::function<void(Replica&, const Batch&)>& body);
  [[nodiscard]] Tensor reduced(Reduce op, const std::vector<detail::Part>& parts,
                               std::optional<std::int64_t> axis = {}) const;
  [[nodiscard]] Tensor gathered(const std::vector<detail::Part>& parts, std::int64_t axis) const;
  void run_members(const std::vector<bool>& takes_part, const std::function<void(Replica&)>& body);
  [[nodiscard]] std::uint32_t first_replica() const;
  void expect_group(const char* word) const;
  void expect_outside_run(const char* word) const;

  std::shared_ptr<StrategyCore> core_;
};

/// Several devices of this process. CPU devices are threads: "cpu:0", "cpu:1", ...; "cuda:0" is a
/// GPU, which the trainer uses and this library only counts as a replica.
class MirroredStrategy final : public Strategy {
 public:
  /// Throws ConfigError if there is no device, an unknown one or one twice, and if the processes
  /// disagree about their ranks or number of replicas. With a coordinator it blocks until all
  /// processes have called it.
  explicit MirroredStrategy(const std::vector<std::string>& devices,
                            const StrategyOptions& options = {});
};

/// One device; `run` calls the function in the calling thread.
class OneDeviceStrategy final : public Strategy {
 public:
  explicit OneDeviceStrategy(const std::string& device = "cpu:0",
                             const StrategyOptions& options = {});
};

}  // namespace penstock
