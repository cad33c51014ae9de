#pragma once
// What the container or service that this process runs in may use (Linux control groups, version 1
// and 2).

#include <cstdint>
#include <optional>
#include <string>

namespace penstock {

/// The smallest limits of the process's group and of those around it. What is not limited, or not
/// known, is empty.
struct CgroupLimits {
  std::optional<double> cores = {};
  std::optional<std::uint64_t> memory_max = {};   // bytes
  std::optional<std::uint64_t> memory_left = {};  // of it; the page cache counts as free
  std::optional<std::uint64_t> pids_max = {};     // threads count too
};

/// Reads the limits below `root`, which is empty outside of tests. Takes some 50 us.
CgroupLimits cgroup_limits(const std::string& root = {});

}  // namespace penstock
