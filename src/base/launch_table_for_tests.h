#pragma once
// For tests: during its lifetime the process has these environment variables and no others.

#include <map>
#include <string>
#include <utility>

#include "base/world.h"

namespace penstock {

class LaunchTable {
 public:
  using Variables = std::map<std::string, std::string>;

  explicit LaunchTable(const Variables& variables = {})
      : before_(set_process_environment(environment_of(variables))) {}
  ~LaunchTable() { set_process_environment(std::move(before_)); }
  LaunchTable(const LaunchTable&) = delete;
  LaunchTable& operator=(const LaunchTable&) = delete;

  static Environment environment_of(const Variables& variables) {
    return [variables](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    };
  }
  /// The variables that torchrun sets for process `rank` of `size`.
  static Variables torchrun(std::uint32_t rank, std::uint32_t size) {
    return {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(size)}};
  }

 private:
  Environment before_;
};

}  // namespace penstock
