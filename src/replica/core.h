#pragma once
// State shared by the scopes, feeds and steps of a strategy; lives as long as one of them.

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/world.h"
#include "penstock/coordinator.h"
#include "replica/team.h"

namespace penstock {

/// The rank of this process among those that train together. Throws ConfigError.
World world_of(const StrategyOptions& options);

struct StrategyCore {
  StrategyCore(const char* kind, std::vector<std::string> replicas, const StrategyOptions& options,
               Strategy* owner)
      : word(kind),
        devices(std::move(replicas)),
        coordinator(options.coordinator != nullptr ? *options.coordinator : Coordinator::alone()),
        world(world_of(options)),
        team(static_cast<std::uint32_t>(devices.size()),
             {options.clock, options.stall_after, options.while_waiting}),
        self(owner) {}

  /// "MirroredStrategy of 2 replicas"
  [[nodiscard]] std::string name() const {
    return fmt::format("{} of {} replica{}", word, devices.size(), devices.size() == 1 ? "" : "s");
  }
  [[nodiscard]] std::uint32_t local_replicas() const {
    return static_cast<std::uint32_t>(devices.size());
  }
  [[nodiscard]] std::uint32_t replicas() const { return local_replicas() * world.size; }
  [[nodiscard]] std::uint32_t first_replica() const { return local_replicas() * world.rank; }
  /// "2 processes, this is 0 (torchrun), 4 replicas each"
  [[nodiscard]] std::string world_text() const {
    return fmt::format("{}, {} replica{}{}", world.text(), devices.size(),
                       devices.size() == 1 ? "" : "s", world.size == 1 ? "" : " each");
  }

  const char* const word;
  const std::vector<std::string> devices;
  Coordinator& coordinator;
  const World world;
  Team team;
  std::atomic<Strategy*> self;  // null after it is destroyed
  std::atomic<std::uint64_t> feeds = 0;
};

}  // namespace penstock
