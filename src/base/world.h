#pragma once
// The rank of this process and the number of processes. Launchers set environment variables, each
// with its own names; the first complete set wins. An incomplete set throws ConfigError: a process
// that guesses would silently train on the wrong data.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace penstock {

struct World {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::optional<std::uint32_t> local_rank;  // on this host, if the launcher sets it
  /// Which part of the data: differs from the rank if several processes share one replica.
  std::uint32_t data_rank = 0;
  std::uint32_t data_size = 1;
  std::string source;  // how it was found, for plans and errors

  /// "3 processes, this is 1 (torchrun)"
  [[nodiscard]] std::string text() const;
  bool operator==(const World&) const = default;
};

/// The value of an environment variable, or nullopt. Tests pass a table.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();
/// Sets what `process_environment` returns, for tests; an empty one means the real variables.
/// Returns the previous one.
Environment set_process_environment(Environment environment);

struct WorldOptions {
  // The explicit argument: both or neither
  std::optional<std::uint32_t> rank = {};
  std::optional<std::uint32_t> size = {};
  std::optional<std::uint32_t> local_rank = {};
  // With tensor or pipeline parallelism: both or neither
  std::optional<std::uint32_t> data_rank = {};
  std::optional<std::uint32_t> data_size = {};
  /// The rank and size of an initialized process group, or nullopt.
  std::function<std::optional<World>()> process_group = {};
};

/// The first complete one of: explicit argument, process group, torchrun, TF_CONFIG, a step of
/// srun, Open MPI, the index of a Kubernetes Job, one process. Throws ConfigError naming variable
/// and value if one is incomplete, garbled or contradicts another.
World find_world(const WorldOptions& options = {},
                 const Environment& environment = process_environment());

}  // namespace penstock
