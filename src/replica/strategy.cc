#include "penstock/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "replica/agreement.h"
#include "replica/core.h"
#include "replica/exchange.h"
#include "replica/feed.h"
#include "replica/scope.h"
#include "trace/blocked.h"
#include "trace/recorder.h"

namespace penstock {
namespace {

constexpr std::uint32_t kDevicesMax = 1024;

/// "cpu:3" for "cpu:3", "CPU:3" and TensorFlow's "/cpu:3"; "cpu" is "cpu:0". "gpu:1" is "cuda:1".
std::string device_name(const char* word, const std::string& given) {
  std::string name = given.starts_with('/') ? given.substr(1) : given;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const auto& [prefix, kind] : {std::pair("cpu", "cpu"), {"cuda", "cuda"}, {"gpu", "cuda"}}) {
    if (name == prefix) return fmt::format("{}:0", kind);
    if (!name.starts_with(fmt::format("{}:", prefix))) continue;
    std::uint32_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + std::strlen(prefix) + 1, end, number);
    if (error == std::errc() && stop == end && number < kDevicesMax)
      return fmt::format("{}:{}", kind, number);
  }
  throw ConfigError(fmt::format("{}: unknown device \"{}\"", word, given), {},
                    fmt::format("devices are cpu:0 to cpu:{}, and cuda:0 and on", kDevicesMax - 1));
}

std::vector<std::string> device_names(const char* word, const std::vector<std::string>& given) {
  if (given.empty())
    throw ConfigError(fmt::format("{}: 0 replicas: no device was given", word), {},
                      R"(name at least one, as in {"cpu:0", "cpu:1"})");
  std::vector<std::string> names;
  for (const std::string& one : given) {
    names.push_back(device_name(word, one));
    if (std::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1)
      throw ConfigError(fmt::format("{}: device {} is listed twice", word, names.back()), {},
                        "list every device once; each is one replica");
  }
  return names;
}

thread_local Replica* running_replica = nullptr;

/// Makes `replica` the current one of the thread while a body runs.
class RunningReplica {
 public:
  explicit RunningReplica(Replica* replica) { running_replica = replica; }
  ~RunningReplica() { running_replica = nullptr; }
  RunningReplica(const RunningReplica&) = delete;
  RunningReplica& operator=(const RunningReplica&) = delete;
};

/// How long each replica computed its share of a step.
class ReplicaTimes {
 public:
  explicit ReplicaTimes(std::size_t replicas) : began_(replicas), ended_(replicas) {}

  /// Measures the function of one replica. Replicas write to places of their own.
  class Measured {
   public:
    Measured(ReplicaTimes& times, std::uint32_t replica) : times_(times), replica_(replica) {
      times_.began_[replica_] = Clock::real().now();
    }
    /// Waits for other replicas inside the function do not count.
    ~Measured() {
      const auto waited = trace::blocked_here().replicas - waited_before_;
      times_.ended_[replica_] =
          Clock::real().now() - Nanoseconds(static_cast<std::int64_t>(waited));
    }
    Measured(const Measured&) = delete;
    Measured& operator=(const Measured&) = delete;

   private:
    ReplicaTimes& times_;
    const std::uint32_t replica_;
    const std::uint64_t waited_before_ = trace::blocked_here().replicas;
  };

  /// Called after all replicas have returned.
  void record(const Step& step, trace::Recorder& recorder,
              const std::vector<std::string>& devices) const {
    if (!recorder.real_time()) return;
    const Nanoseconds all_ended = *std::ranges::max_element(ended_);
    for (std::size_t i = 0; i < began_.size(); ++i) {
      const std::uint64_t rows = step.shares()[i].valid_count();
      if (step.shares()[i].rows() > 0)
        recorder.replica(static_cast<std::uint32_t>(i), "replica " + devices[i], step.step(), rows,
                         began_[i], ended_[i], all_ended);
    }
  }

 private:
  std::vector<Nanoseconds> began_;
  std::vector<Nanoseconds> ended_;
};

/// True while a function of `distribute_from_function` runs.
thread_local bool making_input = false;

}  // namespace

std::uint64_t InputContext::per_replica_batch(std::uint64_t global) const {
  if (global == 0 || global % replicas != 0)
    throw ConfigError(
        fmt::format("per_replica_batch: {} replicas do not divide a batch of {}", replicas, global),
        {}, fmt::format("use distribute(dataset.batch({})): shares then differ by one", global));
  return global / replicas;
}

World world_of(const StrategyOptions& options) {
  WorldOptions asked;
  if (options.process) {
    asked.rank = options.process->rank;
    asked.size = options.process->size;
  }
  const Coordinator* const coordinator = options.coordinator;
  if (coordinator == nullptr) return find_world(asked);
  World world;
  world.rank = world.data_rank = coordinator->rank();
  world.size = world.data_size = coordinator->world();
  world.source = "coordinator";
  if (!options.process) return world;
  const World named = find_world(asked);
  if (named.rank != world.rank || named.size != world.size)
    throw ConfigError(
        fmt::format("world: the coordinator has rank {} of {}, but rank={} and size={} "
                    "were given",
                    world.rank, world.size, named.rank, named.size),
        {}, "leave process out: the coordinator determines it");
  return world;
}

Replica& Replica::current() {
  if (running_replica == nullptr)
    throw ConfigError(
        "replica: no replica runs in this thread: they exist only inside strategy.run", {},
        "don't shard data by replica: strategy.distribute(dataset) cuts every batch");
  return *running_replica;
}

void Replica::expect_own_thread(const char* word) const {
  if (running_replica != this)
    throw ConfigError(
        fmt::format("{} of replica {}: called outside its function or in another thread", word,
                    id_),
        {}, "call it in the function that run calls, in the same thread");
}

void Replica::expect_one_process(const char* word) const {
  if (!one_process_)
    throw ConfigError(fmt::format("{}: this strategy spans several processes", word), {},
                      "return the value and use strategy.reduce after run");
}

Tensor Replica::sum_here(const Tensor& value) {
  expect_own_thread("sum_here");
  return team_->meet(
      local_id_, "sum_here", detail::part_of(value, count_),
      [](std::span<const detail::Part> parts) { return detail::reduce_parts(Reduce::sum, parts); });
}

Tensor Replica::all_reduce_part(Reduce op, const detail::Part& part) {
  expect_own_thread("all_reduce");
  expect_one_process("all_reduce");
  return team_->meet(
      local_id_, op == Reduce::sum ? "all_reduce(sum)" : "all_reduce(mean)", part,
      [op](std::span<const detail::Part> parts) { return detail::reduce_parts(op, parts); });
}

void Replica::barrier() {
  expect_own_thread("barrier");
  expect_one_process("barrier");
  team_->meet(local_id_, "barrier", {}, [](std::span<const detail::Part>) { return Tensor(); });
}

bool Replica::cancelled() const {
  return team_->cancelled();
}

Strategy::Strategy(const char* word, const std::vector<std::string>& devices,
                   const StrategyOptions& options)
    : core_(std::make_shared<StrategyCore>(word, device_names(word, devices), options, this)) {
  constexpr std::uint32_t kReplicasMax = 1U << 20;
  if (core_->world.size > kReplicasMax / core_->local_replicas())
    throw ConfigError(fmt::format("{}: {} processes of {} replicas are more than {}", word,
                                  core_->world.size, core_->local_replicas(), kReplicasMax));
  compare_ranks(core_->coordinator);
  if (core_->coordinator.world() > 1)
    core_->coordinator.compare("replicas of a process", std::to_string(core_->local_replicas()));
}

Strategy::~Strategy() {
  core_->self = nullptr;
  core_->team.stop();
}

std::uint32_t Strategy::num_replicas_in_sync() const {
  return core_->replicas();
}
const std::vector<std::string>& Strategy::devices() const {
  return core_->devices;
}
std::uint32_t Strategy::first_replica() const {
  return core_->first_replica();
}

Scope Strategy::scope() {
  return open_scope(core_);
}

Strategy* Strategy::current() {
  const StrategyCore* const core = current_core();
  return core == nullptr ? nullptr : core->self.load();
}

void Strategy::expect_outside_run(const char* word) const {
  if (running_replica != nullptr)
    throw ConfigError(
        fmt::format("{}: called inside run, on replica {}", word, running_replica->id()), {},
        "call it outside the function that run calls");
}

/// Values of other processes need a coordinator.
void Strategy::expect_group(const char* word) const {
  if (core_->world.size > 1 && core_->coordinator.world() == 1)
    throw ConfigError(fmt::format("{}: this strategy spans {} processes ({})", word,
                                  core_->world.size, core_->world.source),
                      {}, "use train::MultiWorkerMirroredStrategy, or give it a coordinator");
}

Tensor Strategy::reduced(Reduce op, const std::vector<detail::Part>& parts,
                         std::optional<std::int64_t> axis) const {
  expect_group("reduce");
  const auto of = [&](const std::vector<detail::Part>& all) {
    return axis ? detail::reduce_parts(op, all, *axis) : detail::reduce_parts(op, all);
  };
  if (core_->world.size == 1) return of(parts);
  return of(exchange_parts(core_->coordinator, "reduce", parts).parts);
}

Tensor Strategy::gathered(const std::vector<detail::Part>& parts, std::int64_t axis) const {
  expect_group("gather");
  if (core_->world.size == 1) return detail::gather_parts(parts, axis);
  return detail::gather_parts(exchange_parts(core_->coordinator, "gather", parts).parts, axis);
}

Feed Strategy::distribute(const Dataset& dataset, const DistributeOptions& options) {
  expect_outside_run("distribute");
  if (making_input)
    throw ConfigError("distribute: called inside the function of distribute_from_function", {},
                      "return the dataset; it is distributed once");
  if (options.loader.shares)
    throw ConfigError("distribute: loader.shares was set", {},
                      "leave it out: the strategy sets the shares");
  if (dataset.batched()) check_epochs(dataset.cardinality(), options);
  Coordinator& coordinator = core_->coordinator;
  const Shares shares{core_->replicas(), first_replica(), core_->local_replicas()};
  auto feed = std::make_unique<Feed::Impl>(dataset, options, shares, core_);
  // With a tail set here the plan may have other lengths than the dataset.
  check_epochs(feed->plan().steps(), options);
  compare_plans(coordinator, feed->plan(), Comparing::all);
  feed->share_seed(coordinator);
  return Feed(std::move(feed));
}

Feed Strategy::distribute_from_function(const std::function<Dataset(const InputContext&)>& make,
                                        const DistributeOptions& options) {
  expect_outside_run("distribute_from_function");
  if (making_input)
    throw ConfigError("distribute_from_function: called inside its own function", {},
                      "return the dataset; it is distributed once");
  Coordinator& coordinator = core_->coordinator;
  const InputContext context{core_->world.rank, core_->world.size, core_->replicas()};
  const auto made = [&] {
    struct Making {
      Making() { making_input = true; }
      ~Making() { making_input = false; }
    } making;
    return make(context);
  }();
  if (!made.batched())
    throw ConfigError("distribute_from_function: the dataset has no batches", {},
                      "end it with batch(b), b samples per replica");
  // The batches of the function are combined to one global batch and cut again, so that the last
  // ones are spread over all replicas.
  const std::uint64_t batch = Plan(made).batch_samples();
  BatchOptions global;
  DistributeOptions rest = options;
  global.tail = std::exchange(rest.loader.tail, std::nullopt);
  const Dataset dataset =
      made.unbatch().batch(static_cast<std::int64_t>(batch * core_->local_replicas()), global);
  check_epochs(dataset.cardinality(), options);
  const Shares shares{core_->local_replicas(), 0, core_->local_replicas()};
  auto feed = std::make_unique<Feed::Impl>(dataset, rest, shares, core_);
  // Weights are exact only if every process has the same number of samples in each step.
  compare_plans(coordinator, feed->plan(), Comparing::geometry);
  feed->share_seed(coordinator);  // a function that shuffles and shards needs one order
  return Feed(std::move(feed));
}

void Strategy::run_step(const Step& step, const std::function<void(Replica&, const Batch&)>& body) {
  expect_outside_run("run");
  if (!step.core_)
    throw ConfigError("run: this step was moved from", {}, "pass what feed.next() returned");
  if (step.core_ != core_)
    throw ConfigError(fmt::format("run: this step belongs to feed {} of another {}", step.feed_,
                                  step.core_->name()),
                      {}, "distribute the dataset with the strategy that runs it");
  std::vector<bool> takes_part;
  takes_part.reserve(step.shares_.size());
  for (const Batch& share : step.shares_) takes_part.push_back(share.rows() > 0);
  const auto times = std::make_shared<ReplicaTimes>(step.shares_.size());
  // By value: an abandoned replica still uses its share.
  run_members(takes_part, [shares = step.shares_, body, times](Replica& replica) {
    const Batch& share = shares[replica.local_id()];
    replica.count_ = share.valid_count();
    const ReplicaTimes::Measured measured(*times, replica.local_id());
    body(replica, share);
  });
  if (const auto recorder = step.recorder_.lock()) times->record(step, *recorder, core_->devices);
}

void Strategy::each(const std::function<void(Replica&)>& fn) {
  expect_outside_run("each");
  run_members(std::vector<bool>(core_->local_replicas(), true), fn);
}

void Strategy::run_members(const std::vector<bool>& takes_part,
                           const std::function<void(Replica&)>& body) {
  core_->team.run(takes_part, [core = core_, body](std::uint32_t member) {
    Replica replica;
    replica.id_ = core->first_replica() + member;
    replica.local_id_ = member;
    replica.replicas_ = core->replicas();
    replica.device_ = core->devices[member];
    replica.team_ = &core->team;
    replica.one_process_ = core->world.size == 1;
    const RunningReplica running(&replica);
    const Scope scope = open_scope(core);
    body(replica);
  });
}

MirroredStrategy::MirroredStrategy(const std::vector<std::string>& devices,
                                   const StrategyOptions& options)
    : Strategy("MirroredStrategy", devices, options) {}

OneDeviceStrategy::OneDeviceStrategy(const std::string& device, const StrategyOptions& options)
    : Strategy("OneDeviceStrategy", {device}, options) {}

}  // namespace penstock
