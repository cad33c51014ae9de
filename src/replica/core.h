#pragma once
// What a strategy's scopes, feeds and steps know of it; outlives it while one of them is left.

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/coordinator.h"
#include "replica/team.h"

namespace penstock {

struct StrategyCore {
  StrategyCore(const char* kind, std::vector<std::string> replicas, const StrategyOptions& options,
               Strategy* owner)
      : word(kind),
        devices(std::move(replicas)),
        coordinator(options.coordinator != nullptr ? *options.coordinator : Coordinator::alone()),
        team(static_cast<std::uint32_t>(devices.size()), {options.clock, options.stall_after}),
        self(owner) {}

  /// "MirroredStrategy of 2 replicas"
  [[nodiscard]] std::string name() const {
    return fmt::format("{} of {} replica{}", word, devices.size(), devices.size() == 1 ? "" : "s");
  }
  [[nodiscard]] std::uint32_t local_replicas() const {
    return static_cast<std::uint32_t>(devices.size());
  }
  [[nodiscard]] std::uint32_t replicas() const { return local_replicas() * coordinator.world(); }

  const char* const word;
  const std::vector<std::string> devices;
  Coordinator& coordinator;
  Team team;
  std::atomic<Strategy*> self;  // null once it is destroyed
  std::atomic<std::uint64_t> feeds = 0;
};

}  // namespace penstock
