#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <vector>

#include "penstock/io.h"

namespace penstock {
namespace {

constexpr std::uint64_t kTextMax = 1 << 20;
// A version 1 group without a limit has the largest multiple of a page.
constexpr std::uint64_t kUnlimited = 1ULL << 62;

std::string text_of(const std::string& path) {
  auto text = Io::real().read_text(path, kTextMax);
  return text ? *std::move(text) : std::string();
}

template <typename T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> bytes_in(const std::string& path) {
  const auto value = number_of<std::uint64_t>(text_of(path));
  return value && *value < kUnlimited ? value : std::nullopt;
}

template <typename T>
void keep_least(std::optional<T>& least, const std::optional<T>& value) {
  if (value && (!least || *value < *least)) least = value;
}

/// The value of a line "name value".
std::uint64_t line_of(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  std::string key;
  std::uint64_t value = 0;
  while (lines >> key >> value)
    if (key == name) return value;
  return 0;
}

/// The folders of a group and of those around it, the innermost first. If the group's own folder is
/// not visible, as in a container, only that of the mount.
std::vector<std::string> folders_of(const std::string& mount, std::string group) {
  std::vector<std::string> folders;
  while (group.size() > 1 && group[0] == '/') {
    if (Io::real().look(mount + group)) folders.push_back(mount + group);
    group.resize(group.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

void keep_memory(CgroupLimits& limits, std::optional<std::uint64_t> most,
                 std::optional<std::uint64_t> used, std::uint64_t cached) {
  keep_least(limits.memory_max, most);
  if (!most || !used) return;
  const std::uint64_t held = *used - std::min(*used, cached);
  keep_least(limits.memory_left, std::optional(*most - std::min(*most, held)));
}

void add_version_2(CgroupLimits& limits, const std::string& folder) {
  std::istringstream cpu(text_of(folder + "/cpu.max"));
  std::string quota;
  double period = 0;
  if (cpu >> quota >> period && period > 0)
    if (const auto share = number_of<double>(quota))
      keep_least(limits.cores, std::optional(*share / period));
  keep_memory(limits, bytes_in(folder + "/memory.max"), bytes_in(folder + "/memory.current"),
              line_of(text_of(folder + "/memory.stat"), "inactive_file"));
  keep_least(limits.pids_max, bytes_in(folder + "/pids.max"));
}

void add_version_1(CgroupLimits& limits, const std::string& controller, const std::string& folder) {
  if (controller == "cpu") {
    const auto quota = number_of<double>(text_of(folder + "/cpu.cfs_quota_us"));
    const auto period = number_of<double>(text_of(folder + "/cpu.cfs_period_us"));
    if (quota && period && *quota > 0 && *period > 0)
      keep_least(limits.cores, std::optional(*quota / *period));
  } else if (controller == "memory") {
    keep_memory(limits, bytes_in(folder + "/memory.limit_in_bytes"),
                bytes_in(folder + "/memory.usage_in_bytes"),
                line_of(text_of(folder + "/memory.stat"), "total_inactive_file"));
  } else if (controller == "pids") {
    keep_least(limits.pids_max, bytes_in(folder + "/pids.max"));
  }
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::string mount = root + "/sys/fs/cgroup";
  // "0::/user.slice" of version 2, "4:cpu,cpuacct:/docker/1234" of version 1
  std::istringstream groups(text_of(root + "/proc/self/cgroup"));
  std::string line;
  while (std::getline(groups, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (names.empty()) {
      for (const std::string& folder : folders_of(mount, group)) add_version_2(limits, folder);
      continue;
    }
    std::istringstream controllers(names);
    std::string controller;
    while (std::getline(controllers, controller, ',')) {
      for (const std::string& place : {mount + "/" + controller, mount + "/" + names})
        if (Io::real().look(place))
          for (const std::string& folder : folders_of(place, group))
            add_version_1(limits, controller, folder);
    }
  }
  return limits;
}

}  // namespace penstock
