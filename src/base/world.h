#pragma once
// Which of how many processes this one is. Launchers say it in the environment, each in its own
// words; the first one that says it completely is believed, and one that says it by halves is a
// ConfigError: a process that guesses trains on the wrong data in silence.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace penstock {

struct World {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::optional<std::uint32_t> local_rank;  // on this host, where the launcher says it
  /// Which part of the data: differs from the rank where several processes share one replica.
  std::uint32_t data_rank = 0;
  std::uint32_t data_size = 1;
  std::string source;  // who said so, for plans and errors

  /// "3 processes, this is 1 (torchrun)"
  [[nodiscard]] std::string text() const;
  bool operator==(const World&) const = default;
};

/// The value of an environment variable, or nothing. Tests hand in a table.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();
/// What `process_environment` gives from now on, for tests; an empty one stands for the real
/// variables. Returns the one before.
Environment set_process_environment(Environment environment);

struct WorldOptions {
  // The explicit argument: both or none
  std::optional<std::uint32_t> rank = {};
  std::optional<std::uint32_t> size = {};
  std::optional<std::uint32_t> local_rank = {};
  // With tensor or pipeline parallelism: both or none
  std::optional<std::uint32_t> data_rank = {};
  std::optional<std::uint32_t> data_size = {};
  /// An initialized process group's rank and size; nothing where there is none.
  std::function<std::optional<World>()> process_group = {};
};

/// The first complete one of: explicit argument, process group, torchrun, TF_CONFIG, a step of
/// srun, Open MPI, the index of a Kubernetes Job, one process. Throws ConfigError naming variable
/// and value where one is set by halves, garbled or contradicts another.
World find_world(const WorldOptions& options = {},
                 const Environment& environment = process_environment());

}  // namespace penstock
