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
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/loader.h>

namespace penstock {

class Clock;
class Coordinator;
class Feed;
class Strategy;
class Team;
struct ScopeEntry;
struct StrategyCore;

enum class Reduce : std::uint8_t {
  sum,
  mean,  // over the samples of all replicas: divides by their true number
};

/// A sum over `count` samples. The mean of such values divides once, by the sum of the counts.
template <typename T>
struct Counted {
  T sum = {};
  std::uint64_t count = 0;
};

namespace detail {

/// The types that replicas can exchange: double, float, int64, vectors of these, and tensors of
/// f64, f32 or i64; all are sent as tensors.
template <typename T>
struct ReplicaValue {
  static constexpr bool kKnown = false;
};
template <typename T>
  requires(std::same_as<T, double> || std::same_as<T, float> || std::same_as<T, std::int64_t>)
struct ReplicaValue<T> {
  static constexpr bool kKnown = true;
  using Row = void;            // the type of a value after its axis is summed
  using All = std::vector<T>;  // the type that `gather` returns for one value per replica
  static Tensor tensor(const T& value) { return Tensor::scalar(value); }
  static T value(const Tensor& tensor) { return tensor.empty() ? T{} : tensor.item<T>(); }
};
template <typename T>
  requires(std::same_as<T, double> || std::same_as<T, float> || std::same_as<T, std::int64_t>)
struct ReplicaValue<std::vector<T>> {
  static constexpr bool kKnown = true;
  using Row = T;
  using All = std::vector<T>;
  static Tensor tensor(const std::vector<T>& values) {
    return Tensor::view(kDtypeOf<T>, {static_cast<std::int64_t>(values.size())},
                        std::as_bytes(std::span<const T>(values)), nullptr);
  }
  static std::vector<T> value(const Tensor& tensor) {
    if (tensor.empty()) return {};
    const auto values = tensor.values<T>();
    return {values.begin(), values.end()};
  }
};
template <>
struct ReplicaValue<Tensor> {
  static constexpr bool kKnown = true;
  using Row = Tensor;
  using All = Tensor;
  static Tensor tensor(const Tensor& value) { return value; }
  static Tensor value(const Tensor& tensor) { return tensor; }
};

/// How many samples a share holds, and which of its rows they are.
struct ShareCount {
  std::uint64_t rows = 0;
  std::uint64_t valid = 0;
  std::vector<std::uint8_t> mask;  // empty: all rows
};

/// One replica's part of a value.
struct Part {
  std::optional<Tensor> value;  // nullopt: the replica had no rows
  std::uint64_t count = 0;      // samples that the value covers
  bool is_sum = false;          // the sum over those samples; else their mean
  const ShareCount* share = nullptr;
};

Tensor reduce_parts(Reduce op, std::span<const Part> parts);
/// Sums along `axis` of each value first. Along axis 0, padding rows do not count.
Tensor reduce_parts(Reduce op, std::span<const Part> parts, std::int64_t axis);
Tensor gather_parts(std::span<const Part> parts, std::int64_t axis);
[[noreturn]] void throw_no_value(std::size_t replica, std::size_t replicas);

template <typename T>
struct IsCounted : std::false_type {
  using Inner = T;
};
template <typename T>
struct IsCounted<Counted<T>> : std::true_type {
  using Inner = T;
};

template <typename T>
Part part_of(const T& value, std::uint64_t count) {
  using Inner = typename IsCounted<T>::Inner;
  static_assert(ReplicaValue<Inner>::kKnown,
                "replicas exchange double, float, int64_t, vectors of these, Tensors, and Counted "
                "of any of them");
  if constexpr (IsCounted<T>::value) {
    return {ReplicaValue<Inner>::tensor(value.sum), value.count, true, nullptr};
  } else {
    return {ReplicaValue<Inner>::tensor(value), count, false, nullptr};
  }
}

}  // namespace detail

/// One value for each replica of this process, and the number of samples that each value covers.
template <typename T>
class PerReplica {
 public:
  /// `values[r]` covers `counts[r]` samples; counts default to one each.
  explicit PerReplica(std::vector<T> values, std::vector<std::uint64_t> counts = {})
      : shares_(values.size()) {
    for (T& value : values) values_.emplace_back(std::move(value));
    for (std::size_t r = 0; r < shares_.size(); ++r)
      shares_[r].rows = shares_[r].valid = r < counts.size() ? counts[r] : 1;
  }

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  /// False if the replica's share was empty and nothing was computed there.
  [[nodiscard]] bool has(std::size_t replica) const {
    return replica < size() && values_[replica].has_value();
  }
  /// Throws ConfigError if the replica has no value.
  [[nodiscard]] const T& operator[](std::size_t replica) const {
    if (!has(replica)) detail::throw_no_value(replica, size());
    return *values_[replica];
  }
  [[nodiscard]] std::uint64_t count(std::size_t replica) const { return shares_.at(replica).valid; }
  /// Samples of all replicas of this process.
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t all = 0;
    for (const detail::ShareCount& share : shares_) all += share.valid;
    return all;
  }

 private:
  friend class Strategy;
  explicit PerReplica(std::vector<detail::ShareCount> shares)
      : values_(shares.size()), shares_(std::move(shares)) {}
  [[nodiscard]] std::vector<detail::Part> parts() const {
    std::vector<detail::Part> parts(size());
    for (std::size_t r = 0; r < size(); ++r) {
      if (values_[r]) parts[r] = detail::part_of(*values_[r], shares_[r].valid);
      parts[r].share = &shares_[r];
    }
    return parts;
  }

  std::vector<std::optional<T>> values_;
  std::vector<detail::ShareCount> shares_;
};

/// The shares of one global step for the replicas of this process, as returned by `Feed::next`.
/// Copies share the memory of the batches. Thread-safe for reading.
class Step {
 public:
  /// One batch per replica of this process, in replica order; it may have 0 rows.
  [[nodiscard]] std::span<const Batch> shares() const { return shares_; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  /// Number of the step in its epoch, from 0.
  [[nodiscard]] std::uint64_t step() const { return step_; }
  /// Samples in the shares of this process, and in the whole step.
  [[nodiscard]] std::uint64_t valid_count() const;
  [[nodiscard]] std::uint64_t global_valid() const;

 private:
  friend class Feed;
  friend class Strategy;
  Step() = default;
  [[nodiscard]] std::vector<detail::ShareCount> counts() const;

  std::vector<Batch> shares_;
  std::uint64_t epoch_ = 0;
  std::uint64_t step_ = 0;
  std::uint64_t feed_ = 0;
  std::shared_ptr<StrategyCore> core_;
};

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

/// The argument of the function of `distribute_from_function`.
struct InputContext {
  std::uint32_t pipeline = 0;   // the number of this process's pipeline
  std::uint32_t pipelines = 1;  // one per process
  std::uint32_t replicas = 1;   // in all processes
  /// `global` divided by the number of replicas. Throws ConfigError if that leaves a remainder: use
  /// `distribute`, which cuts unevenly and is exact.
  [[nodiscard]] std::uint64_t per_replica_batch(std::uint64_t global) const;
};

struct DistributeOptions {
  /// The number of steps in an epoch, instead of one pass over the data. If it is less than a pass,
  /// the next epoch continues where this one ended; if it is more, the dataset needs repeat().
  std::optional<std::uint64_t> steps_per_epoch = {};
  bool restart = false;       // each epoch starts a new pass
  bool short_epoch = false;   // the end of the data ends the epoch early
  LoaderOptions loader = {};  // all but `shares`, which the strategy sets
};

/// A distributed dataset: prepares steps in the background and returns them in order, cut for the
/// replicas. Not thread-safe: use it from one thread at a time; only `stop` and `ledger` may be
/// called from any thread.
class Feed {
 public:
  Feed(Feed&&) noexcept;
  Feed& operator=(Feed&&) noexcept;
  ~Feed();

  /// Returns the next step, or nullopt at the end of an epoch; the call after that starts the next
  /// epoch. Blocks until all shares of this process are ready. Throws like `Iterator::next`, and
  /// ConfigError if a stream ends before steps_per_epoch without `short_epoch`.
  std::optional<Step> next();
  /// Returns true if the epoch has no further step. Does not compute one; for a stream it may block
  /// (see `Iterator::at_end`).
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] const Plan& plan() const;
  /// Number of steps in an epoch. Throws ConfigError for a stream without steps_per_epoch.
  [[nodiscard]] std::uint64_t size() const;
  /// The current epoch, from 0.
  [[nodiscard]] std::uint64_t epoch() const;
  /// Moves to the start of `epoch`. Right after `restore`, passing the epoch of that state keeps
  /// the position in it. Throws ConfigError if epochs are parts of a longer pass.
  void set_epoch(std::uint64_t epoch);
  /// The position after the last step that `next` returned, the same on every process. Blocks and
  /// throws like `Iterator::state`.
  [[nodiscard]] State state() const;
  /// Moves to the position of `state`, also if it was saved with a different number of replicas.
  /// Throws StateError if the state is of another dataset or was saved in the middle of an epoch of
  /// more steps.
  void restore(const State& state);
  /// Like `Iterator::stop`: a `next` that waits throws CancelledError; `next` resumes. May be
  /// called from any thread.
  void stop();
  /// The samples skipped under OnError::skip. Thread-safe.
  [[nodiscard]] const Ledger& ledger() const;

  /// `for (const Step& step : feed)` yields the rest of the epoch. Leaving the loop early ends the
  /// epoch. Blocks and throws like `next`.
  EpochIterator<Feed, Step> begin();
  std::default_sentinel_t end() { return {}; }

 private:
  friend class Strategy;
  class Impl;
  explicit Feed(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Makes its strategy the current one of the thread that created it. Scopes nest and must end in
/// that thread, the last one first. The destructor never throws: it reports errors, so that an
/// exception in flight is not replaced.
class Scope {
 public:
  Scope(Scope&&) noexcept;
  Scope& operator=(Scope&&) = delete;
  ~Scope();

  /// Ends the scope. Throws ConfigError if it has ended, in another thread, or before an inner
  /// scope; in the last two cases the scope stays open.
  void leave();
  /// Like `leave`, but returns the error message instead of throwing; for use while another
  /// exception is in flight.
  [[nodiscard]] std::optional<std::string> try_leave();

 private:
  friend Scope open_scope(std::shared_ptr<StrategyCore> core);
  explicit Scope(std::shared_ptr<ScopeEntry> entry);
  std::shared_ptr<ScopeEntry> entry_;
};

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
