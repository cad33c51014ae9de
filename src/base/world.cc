#include "base/world.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr const char* kNoLauncher = "one process";
constexpr const char* kRemedy =
    "let the launcher set all of them or none, or pass rank and size explicitly";

std::optional<std::uint32_t> parse_number(const std::string& text) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

/// Reads one launcher's variables.
class Variables {
 public:
  Variables(const Environment& environment, std::string launcher)
      : environment_(environment), launcher_(std::move(launcher)) {}

  /// An empty value counts as unset: `export RANK=` is how shells unset one.
  [[nodiscard]] std::optional<std::string> text(const std::string& name) const {
    auto value = environment_(name);
    if (value && value->empty()) value.reset();
    return value;
  }
  [[nodiscard]] std::optional<std::uint32_t> number(const std::string& name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    const auto parsed = parse_number(*value);
    if (!parsed) refuse(fmt::format("{}={} is not a number", name, *value));
    return parsed;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw ConfigError(fmt::format("world: {}: {}", launcher_, why), {}, kRemedy);
  }
  [[nodiscard]] std::string set(const std::string& name) const {
    return fmt::format("{}={}", name, text(name).value_or(""));
  }

  struct Names {
    std::string rank;
    std::string size;
    std::string local_rank;
  };
  /// Nullopt if none is set.
  [[nodiscard]] std::optional<World> world(const Names& names) const {
    const auto rank = number(names.rank);
    const auto size = number(names.size);
    const auto local = number(names.local_rank);
    if (!rank && !size && !local) return std::nullopt;
    const std::string given = set(rank ? names.rank : size ? names.size : names.local_rank);
    if (!rank) refuse(fmt::format("{} is set, {} is not", given, names.rank));
    if (!size) refuse(fmt::format("{} is set, {} is not", given, names.size));
    if (*size == 0) refuse(fmt::format("{}: the world has no processes", set(names.size)));
    if (*rank >= *size)
      refuse(fmt::format("{} is out of range: {}", set(names.rank), set(names.size)));
    if (local && *local >= *size)
      refuse(fmt::format("{} is out of range: {}", set(names.local_rank), set(names.size)));
    World world;
    world.rank = *rank;
    world.size = *size;
    world.local_rank = local;
    world.source = launcher_;
    return world;
  }

 private:
  const Environment& environment_;
  std::string launcher_;
};

[[noreturn]] void refuse_argument(const std::string& why) {
  throw ConfigError(fmt::format("world: {}", why), {},
                    "give rank and size, rank < size; and data_rank and data_size, "
                    "data_rank < data_size <= size, or neither");
}

std::optional<World> explicit_world(const WorldOptions& options) {
  if (!options.rank && !options.size && !options.local_rank) return std::nullopt;
  if (!options.rank) refuse_argument("size or local_rank was given, rank was not");
  if (!options.size) refuse_argument(fmt::format("rank={} was given, size was not", *options.rank));
  if (*options.size == 0) refuse_argument("size=0: the world has no processes");
  if (*options.rank >= *options.size)
    refuse_argument(fmt::format("rank={} is out of range: size={}", *options.rank, *options.size));
  if (options.local_rank && *options.local_rank >= *options.size)
    refuse_argument(
        fmt::format("local_rank={} is out of range: size={}", *options.local_rank, *options.size));
  World world;
  world.rank = *options.rank;
  world.size = *options.size;
  world.local_rank = options.local_rank;
  world.source = "explicit argument";
  return world;
}

std::optional<World> torchrun_world(const Environment& environment) {
  const Variables variables(environment, "torchrun");
  const auto world = variables.world({"RANK", "WORLD_SIZE", "LOCAL_RANK"});
  const auto local_size = variables.number("LOCAL_WORLD_SIZE");
  if (!world || !local_size) return world;
  if (*local_size > world->size)
    variables.refuse(fmt::format("{} contradicts {}", variables.set("LOCAL_WORLD_SIZE"),
                                 variables.set("WORLD_SIZE")));
  if (world->local_rank && *world->local_rank >= *local_size)
    variables.refuse(fmt::format("{} is out of range: {}", variables.set("LOCAL_RANK"),
                                 variables.set("LOCAL_WORLD_SIZE")));
  return world;
}

std::optional<World> process_group_world(const WorldOptions& options,
                                         const Environment& environment) {
  auto group = options.process_group ? options.process_group() : std::nullopt;
  if (!group) return std::nullopt;
  const auto launched = torchrun_world(environment);
  if (launched && (launched->rank != group->rank || launched->size != group->size))
    throw ConfigError(
        fmt::format("world: the process group says rank {} of {}, RANK={} and WORLD_SIZE={} say "
                    "another",
                    group->rank, group->size, launched->rank, launched->size),
        {}, "initialize the group from the environment, or pass rank and size explicitly");
  if (!group->local_rank && launched) group->local_rank = launched->local_rank;
  group->source = "process group";
  return group;
}

/// The training tasks in rank order: the chief first, then the workers, as in TensorFlow.
class TfConfig {
 public:
  TfConfig(const Variables& variables, const std::string& text)
      : variables_(variables), text_(text.size() > 200 ? text.substr(0, 200) + "..." : text) {
    const auto parsed = parse_json(text);
    if (!parsed || !parsed->is_object()) refuse("is not a JSON object");
    if (parsed->contains("cluster")) cluster_ = parsed->at("cluster");
    if (parsed->contains("task")) task_ = parsed->at("task");
    if (!cluster_.is_object()) refuse("\"cluster\" is not an object");
  }

  [[nodiscard]] World world() const {
    World world;
    world.source = "TF_CONFIG";
    if (cluster_.empty()) return world;
    if (!task_.is_object()) refuse("has a \"cluster\" and no \"task\"");
    if (cluster_.contains("ps"))
      refuse("names parameter servers (\"ps\"); replicas here are mirrored");
    if (!task_.contains("type") || !task_["type"].is_string()) refuse("\"task\" has no \"type\"");
    const auto type = task_["type"].get<std::string>();
    const std::uint32_t index = index_of_task();
    if (type == "evaluator") return world;  // it evaluates alone, outside the cluster
    if (type != "chief" && type != "master" && type != "worker")
      refuse(fmt::format("task type \"{}\" does not train", type));
    std::uint32_t before = 0;
    std::uint32_t size = 0;
    std::uint32_t of_type = 0;
    std::set<std::string> seen;
    for (const char* const job : {"chief", "master", "worker"}) {
      const std::uint32_t hosts = hosts_of(job, seen);
      if (type == job) {
        before = size;
        of_type = hosts;
      }
      size += hosts;
    }
    if (index >= of_type)
      refuse(fmt::format("{} {} is out of range: the cluster has {}", type, index, of_type));
    world.rank = before + index;
    world.size = size;
    return world;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    variables_.refuse(fmt::format("TF_CONFIG={} {}", text_, why));
  }
  [[nodiscard]] std::uint32_t index_of_task() const {
    const Json index = task_.contains("index") ? task_["index"] : Json();
    const auto number = parse_number(index.is_string() ? index.get<std::string>() : index.dump());
    if (!number) refuse("\"task\" has no \"index\" that is a number");
    return *number;
  }
  std::uint32_t hosts_of(const char* job, std::set<std::string>& seen) const {
    if (!cluster_.contains(job)) return 0;
    const Json& hosts = cluster_[job];
    if (!hosts.is_array()) refuse(fmt::format("\"{}\" is not a list of hosts", job));
    for (const Json& host : hosts) {
      if (!host.is_string()) refuse(fmt::format("\"{}\" is not a list of hosts", job));
      if (!seen.insert(host.get<std::string>()).second)
        refuse(fmt::format("names {} twice", host.get<std::string>()));
    }
    return static_cast<std::uint32_t>(hosts.size());
  }

  const Variables& variables_;
  std::string text_;
  Json cluster_ = Json::object();
  Json task_;
};

std::optional<World> tf_config_world(const Environment& environment) {
  const Variables variables(environment, "TensorFlow");
  const auto text = variables.text("TF_CONFIG");
  if (!text) return std::nullopt;
  return TfConfig(variables, *text).world();
}

std::optional<World> slurm_world(const Environment& environment) {
  const Variables variables(environment, "srun");
  const auto step = variables.number("SLURM_STEP_ID");
  // Batch scripts and interactive shells have the job's variables too, but are one process; Slurm
  // numbers their steps from the top.
  constexpr std::uint32_t kSpecialSteps = 0xFFFFFFF0;
  if (!step || *step >= kSpecialSteps) return std::nullopt;
  // A step may have fewer tasks than its job.
  const char* const size =
      variables.text("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  auto world = variables.world({"SLURM_PROCID", size, "SLURM_LOCALID"});
  if (!world)
    variables.refuse(fmt::format("{} is set, SLURM_PROCID is not", variables.set("SLURM_STEP_ID")));
  return world;
}

std::optional<World> open_mpi_world(const Environment& environment) {
  return Variables(environment, "Open MPI")
      .world({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"});
}

std::optional<World> kubernetes_world(const Environment& environment) {
  // Kubernetes passes a pod its index but not the number of pods: the Job's manifest must.
  const Variables variables(environment, "Kubernetes");
  if (!variables.text("JOB_COMPLETION_INDEX")) return std::nullopt;
  if (!variables.text("PENSTOCK_WORLD_SIZE"))
    throw ConfigError(
        fmt::format("world: Kubernetes: {} is set, PENSTOCK_WORLD_SIZE is not",
                    variables.set("JOB_COMPLETION_INDEX")),
        {},
        "set PENSTOCK_WORLD_SIZE to the Job's completions (1 and index 0 where pods train alone), "
        "or pass rank and size explicitly");
  return variables.world({"JOB_COMPLETION_INDEX", "PENSTOCK_WORLD_SIZE", ""});
}

void set_data_rank(World& world, const WorldOptions& options) {
  world.data_rank = world.rank;
  world.data_size = world.size;
  if (!options.data_rank && !options.data_size) return;
  if (!options.data_rank)
    refuse_argument(fmt::format("data_size={} without data_rank", *options.data_size));
  if (!options.data_size)
    refuse_argument(fmt::format("data_rank={} without data_size", *options.data_rank));
  if (*options.data_rank >= *options.data_size)
    refuse_argument(fmt::format("data_rank={} is out of range: data_size={}", *options.data_rank,
                                *options.data_size));
  if (*options.data_size > world.size)
    refuse_argument(
        fmt::format("data_size={} is more than the {} processes", *options.data_size, world.size));
  world.data_rank = *options.data_rank;
  world.data_size = *options.data_size;
}

}  // namespace

namespace {

class Seam {
 public:
  Environment exchange(Environment environment) {
    Lock lock(mutex_);
    return std::exchange(environment_, std::move(environment));
  }
  [[nodiscard]] Environment get() const {
    Lock lock(mutex_);
    return environment_;
  }

 private:
  mutable Mutex mutex_;
  Environment environment_ PENSTOCK_GUARDED_BY(mutex_);
};

Seam& seam() {
  static Seam only;
  return only;
}

}  // namespace

Environment process_environment() {
  if (Environment given = seam().get()) return given;
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = name.empty() ? nullptr : std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Environment set_process_environment(Environment environment) {
  return seam().exchange(std::move(environment));
}

std::string World::text() const {
  if (source == kNoLauncher) return source;
  return fmt::format("{} process{}, this is {} ({})", size, size == 1 ? "" : "es", rank, source);
}

World find_world(const WorldOptions& options, const Environment& environment) {
  auto world = explicit_world(options);
  if (!world) world = process_group_world(options, environment);
  for (const auto provider :
       {torchrun_world, tf_config_world, slurm_world, open_mpi_world, kubernetes_world}) {
    if (!world) world = provider(environment);
  }
  if (!world) {
    world.emplace();
    world->local_rank = 0;
    world->source = kNoLauncher;
  }
  set_data_rank(*world, options);
  return *world;
}

}  // namespace penstock
