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
// replica whose share is empty computes nothing and counts as zero of zero samples wherever values
// meet. Sums are added in replica order, so that a rerun gives the same bits.

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

/// A sum over `count` samples. The mean of such values divides once, by all counts.
template <typename T>
struct Counted {
  T sum = {};
  std::uint64_t count = 0;
};

namespace detail {

/// What replicas may hand to each other: double, float, int64, vectors of these, and tensors of
/// f64, f32 or i64; all travel as tensors.
template <typename T>
struct ReplicaValue {
  static constexpr bool kKnown = false;
};
template <typename T>
  requires(std::same_as<T, double> || std::same_as<T, float> || std::same_as<T, std::int64_t>)
struct ReplicaValue<T> {
  static constexpr bool kKnown = true;
  using Row = void;            // what is left of a value when its axis is summed away
  using All = std::vector<T>;  // what `gather` makes of one value per replica
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
  std::optional<Tensor> value;  // nothing: the replica had no rows
  std::uint64_t count = 0;      // samples that the value is over
  bool is_sum = false;          // over those samples; else their mean
  const ShareCount* share = nullptr;
};

Tensor reduce_parts(Reduce op, std::span<const Part> parts);
/// Sums along `axis` of each value first. Along axis 0, rows that are padding do not count.
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

/// One value for each replica of this process, and how many samples each is over.
template <typename T>
class PerReplica {
 public:
  /// `values[r]` is over `counts[r]` samples; counts default to one each.
  explicit PerReplica(std::vector<T> values, std::vector<std::uint64_t> counts = {})
      : shares_(values.size()) {
    for (T& value : values) values_.emplace_back(std::move(value));
    for (std::size_t r = 0; r < shares_.size(); ++r)
      shares_[r].rows = shares_[r].valid = r < counts.size() ? counts[r] : 1;
  }

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  /// False where the replica's share was empty: nothing was computed there.
  [[nodiscard]] bool has(std::size_t replica) const {
    return replica < size() && values_[replica].has_value();
  }
  /// Throws ConfigError where there is none.
  [[nodiscard]] const T& operator[](std::size_t replica) const {
    if (!has(replica)) detail::throw_no_value(replica, size());
    return *values_[replica];
  }
  [[nodiscard]] std::uint64_t count(std::size_t replica) const { return shares_.at(replica).valid; }
  /// Samples of all replicas here.
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

/// The shares of one global step for the replicas of this process. Only `Feed::next` makes one.
class Step {
 public:
  [[nodiscard]] std::span<const Batch> shares() const { return shares_; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  /// Number of the step in its epoch.
  [[nodiscard]] std::uint64_t step() const { return step_; }
  /// Samples in the shares here, and in the whole step.
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

/// Where a function runs while `Strategy::run` calls it. Valid during that call, in its thread.
class Replica {
 public:
  /// Number among all replicas, and among those of this process.
  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] std::uint32_t local_id() const { return local_id_; }
  [[nodiscard]] std::uint32_t num_replicas_in_sync() const { return replicas_; }
  [[nodiscard]] const std::string& device() const { return device_; }
  /// Samples of this replica's share.
  [[nodiscard]] std::uint64_t count() const { return count_; }

  /// The sum, or the mean over all samples, of every replica's value; all replicas with rows must
  /// call it, in the same order. Throws CancelledError when another replica has failed.
  template <typename T>
  [[nodiscard]] auto all_reduce(Reduce op, const T& value) {
    using Inner = typename detail::IsCounted<T>::Inner;
    return detail::ReplicaValue<Inner>::value(all_reduce_part(op, detail::part_of(value, count_)));
  }
  /// Returns when all replicas with rows have come.
  void barrier();
  /// The sum over the replicas of this process alone, in replica order.
  [[nodiscard]] Tensor sum_here(const Tensor& value);
  /// True when another replica has failed: what this one computes will not be used.
  [[nodiscard]] bool cancelled() const;

  /// The replica this thread runs. Throws ConfigError outside `run`: there is none, and data is cut
  /// by `distribute`, never by a replica's number.
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

/// What the function of `distribute_from_function` is told.
struct InputContext {
  std::uint32_t pipeline = 0;   // number of this process's pipeline
  std::uint32_t pipelines = 1;  // one per process
  std::uint32_t replicas = 1;   // in sync, in all processes
  /// `global` cut for one replica. Throws ConfigError where it does not divide: `distribute` then
  /// cuts unevenly and exactly.
  [[nodiscard]] std::uint64_t per_replica_batch(std::uint64_t global) const;
};

struct DistributeOptions {
  /// An epoch is so many steps instead of one pass over the data. Below a pass the next epoch goes
  /// on where this one ended; above a pass the dataset needs repeat().
  std::optional<std::uint64_t> steps_per_epoch = {};
  bool restart = false;       // each epoch starts a new pass
  bool short_epoch = false;   // data that ends before steps_per_epoch ends the epoch
  LoaderOptions loader = {};  // all but `shares`, which the strategy sets
};

/// A distributed dataset: steps come ready, in order, cut for the replicas. Call from one thread;
/// `stop` from any.
class Feed {
 public:
  Feed(Feed&&) noexcept;
  Feed& operator=(Feed&&) noexcept;
  ~Feed();

  /// The next step, or nothing at the end of an epoch; the call after that begins the next one.
  std::optional<Step> next();
  /// True when the epoch has no further step: known without computing one.
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] const Plan& plan() const;
  /// Steps of an epoch; throws ConfigError when only running shows it.
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::uint64_t epoch() const;
  /// Goes to the start of an epoch. Right after `restore`, the epoch of that state keeps the
  /// position in it. Throws ConfigError where epochs are steps of a longer pass.
  void set_epoch(std::uint64_t epoch);
  [[nodiscard]] State state() const;
  /// Throws StateError when the state is of another dataset.
  void restore(const State& state);
  /// Ends a wait in `next` with CancelledError and lets the threads go. `next` starts them again.
  void stop();
  [[nodiscard]] const Ledger& ledger() const;

  /// `for (const Step& step : feed)`: what is left of the epoch. A loop that was left early ends
  /// its epoch.
  class EpochIterator;
  struct EpochEnd {};
  EpochIterator begin();
  EpochEnd end() { return {}; }

 private:
  friend class Strategy;
  class Impl;
  explicit Feed(std::unique_ptr<Impl> impl);
  void loop_ended();
  std::unique_ptr<Impl> impl_;
};

class Feed::EpochIterator {
 public:
  using value_type = Step;
  using difference_type = std::ptrdiff_t;
  explicit EpochIterator(Feed* feed) : feed_(feed) { ++*this; }
  const Step& operator*() const { return *step_; }
  EpochIterator& operator++() {
    step_ = feed_->next();
    if (!step_) feed_->loop_ended();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const EpochIterator& it, EpochEnd) { return !it.step_; }

 private:
  Feed* feed_;
  std::optional<Step> step_;
};

/// While it lives, its strategy is the current one of the thread that made it. Leave scopes in that
/// thread, the last one first. The destructor never throws: what is wrong then goes to the report
/// sink, so that an error on its way stays what it is.
class Scope {
 public:
  Scope(Scope&&) noexcept;
  Scope& operator=(Scope&&) = delete;
  ~Scope();

  /// Throws ConfigError when left twice, in another thread or before a scope inside it; in the last
  /// two cases the scope stays open.
  void leave();
  /// As `leave`, but says what is wrong instead of throwing it; for places where another error is
  /// on its way.
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
  /// Of the processes that train together, each with as many replicas; must outlive the strategy.
  Coordinator* coordinator = nullptr;
  /// Which of them this one is. By default what the coordinator says or, without one, what the
  /// launcher says (torchrun, TF_CONFIG, srun, Open MPI, a Kubernetes Job).
  std::optional<ProcessRank> process = {};
  /// A replica that is waited for this long is named in a report.
  std::chrono::milliseconds stall_after = std::chrono::seconds(30);
  Clock* clock = nullptr;  // for tests
  /// Called now and then by replicas that wait for others, without locks. What it throws in the
  /// thread that called run ends the step; a replica that is still inside its function half a
  /// second later is abandoned, so the function must own all that it touches.
  std::function<void()> while_waiting = {};
};

/// Replicas of one process. Threads start with the first run and are joined in the destructor.
/// Use it from one thread at a time.
class Strategy {
 public:
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  virtual ~Strategy();

  [[nodiscard]] std::uint32_t num_replicas_in_sync() const;
  [[nodiscard]] const std::vector<std::string>& devices() const;
  [[nodiscard]] Scope scope();
  /// The strategy of the innermost open scope of this thread, or of the replica it runs; or none.
  static Strategy* current();

  /// Cuts each global batch for the replicas. Throws ConfigError where the plan would not work, and
  /// where the processes' plans differ.
  [[nodiscard]] Feed distribute(const Dataset& dataset, const DistributeOptions& options = {});
  /// Calls `make` once; `batch(b)` in it is for one replica.
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
  /// the first in the calling thread. What it returns comes back per replica. When a replica
  /// throws, the others are cancelled at their next collective, the first cause is rethrown as it
  /// was, the others are reported, and the strategy can be used again.
  template <typename F>
  auto run(F&& fn, const Step& step) {
    static_assert(std::invocable<F&, Replica&, const Batch&>,
                  "run calls fn(Replica&, const Batch& share)");
    using T = std::remove_cvref_t<std::invoke_result_t<F&, Replica&, const Batch&>>;
    if constexpr (std::is_void_v<T> && std::is_lvalue_reference_v<F>) {
      run_step(step, [&fn](Replica& replica, const Batch& share) { fn(replica, share); });
    } else if constexpr (std::is_void_v<T>) {
      // Moved along: a replica that was abandoned still has its function.
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

  /// Calls `fn(Replica&)` on every replica here, whether it has rows or not: for what keeps the
  /// replicas alike, such as an update of their weights. Failures as in `run`.
  void each(const std::function<void(Replica&)>& fn);

  /// The values of all replicas, of all processes where there are several (then every process must
  /// call it), added, or averaged over their samples: a plain value is taken as
  /// the mean over its replica's share and weighs as many samples; a Counted one is a sum, and the
  /// mean divides once. Throws ConfigError for the mean of no samples, and of integers.
  template <typename T>
  [[nodiscard]] auto reduce(Reduce op, const PerReplica<T>& value) const {
    return detail::ReplicaValue<typename detail::IsCounted<T>::Inner>::value(
        reduced(op, value.parts()));
  }
  /// The same over an axis of the values: with axis 0 a vector is one value per sample, and its
  /// mean divides by the number of samples in all replicas.
  template <typename T>
  [[nodiscard]] auto reduce(Reduce op, const PerReplica<T>& value, std::int64_t axis) const {
    using Row = typename detail::ReplicaValue<T>::Row;
    static_assert(!std::is_void_v<Row>, "a number has no axis: reduce it without one");
    return detail::ReplicaValue<Row>::value(reduced(op, value.parts(), axis));
  }
  /// The values of all replicas one after the other, without rows that are padding.
  template <typename T>
  [[nodiscard]] auto gather(const PerReplica<T>& value, std::int64_t axis = 0) const {
    return detail::ReplicaValue<typename detail::ReplicaValue<T>::All>::value(
        gathered(value.parts(), axis));
  }
  /// One value for each replica here: `fn(number of the replica)`.
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

/// Several devices of this process. CPU devices are threads: "cpu:0", "cpu:1", ...; "cuda:0" names
/// a GPU, which the trainer uses and this library only counts as a replica.
class MirroredStrategy final : public Strategy {
 public:
  explicit MirroredStrategy(const std::vector<std::string>& devices,
                            const StrategyOptions& options = {});
};

/// One device; everything runs in the calling thread.
class OneDeviceStrategy final : public Strategy {
 public:
  explicit OneDeviceStrategy(const std::string& device = "cpu:0",
                             const StrategyOptions& options = {});
};

}  // namespace penstock
