#include "penstock/doctor.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/cgroup.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/printable.h"
#include "base/thread.h"
#include "codec/versions.h"
#include "kernel/feistel.h"
#include "penstock/clock.h"
#include "penstock/error.h"
#include "penstock/io.h"
#include "report/words.h"
#include "run/budget.h"

namespace penstock {
namespace {

constexpr std::uint64_t kTextMax = 8ULL << 20;

std::string text_of(const std::string& path) {
  auto text = Io::real().read_text(path, kTextMax);
  return text ? *std::move(text) : std::string();
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

class Examination {
 public:
  explicit Examination(const ExamineOptions& options) : options_(options) {}

  MachineExamination all() {
    versions();
    cores();
    memory();
    shared_memory();
    limits();
    gpu();
    libraries();
    if (!options_.data.empty()) disk();
    return std::move(found_);
  }

 private:
  void fact(const char* name, std::string value) {
    found_.facts.push_back({name, std::move(value)});
  }
  void problem(std::string what, std::string remedy) {
    found_.problems.push_back({std::move(what), std::move(remedy)});
  }

  void versions() {
    fact("penstock", PENSTOCK_VERSION);
    fact("libraries", codec_versions());
    std::istringstream lines(text_of(options_.root + "/proc/cpuinfo"));
    std::string line;
    std::string model = "unknown";
    while (std::getline(lines, line))
      if (line.starts_with("model name") && line.find(": ") != std::string::npos)
        model = line.substr(line.find(": ") + 2);
    fact("CPU", fmt::format("{}; {} kernels", printable(model), Feistel::targets().back().name));
    fact("kernel", printable(first_line(text_of(options_.root + "/proc/sys/kernel/osrelease"))));
  }

  void cores() {
    const unsigned machine = machine_cores();
    const unsigned usable = usable_cores();
    const auto quota = group_.cores;
    std::string text = fmt::format("{} of {}", usable, machine);
    if (quota) text += fmt::format("; the container's quota is {:.1f}", *quota);
    fact("cores", text);
    fact("threads", fmt::format("{}, one for each usable core, for all loaders together", usable));
    if (quota && *quota < 1)
      problem(fmt::format("the container may use {:.2f} of a core", *quota),
              "give it at least one core (--cpus, or resources.limits.cpu)");
    else if (quota && *quota < machine && usable == static_cast<unsigned>(*quota) &&
             *quota > usable)
      problem(fmt::format("the container's quota of {:.1f} cores is rounded down to {} threads",
                          *quota, usable),
              "give it a whole number of cores");
  }

  void memory() {
    const std::uint64_t available = memory_available();
    std::string text = fmt::format("{} available", bytes_text(static_cast<double>(available)));
    if (group_.memory_max)
      text += fmt::format("; the container may have {}",
                          bytes_text(static_cast<double>(*group_.memory_max)));
    fact("memory", text);
    fact("for batches in preparation",
         bytes_text(static_cast<double>(ByteBudget::process().limit())));
    constexpr std::uint64_t kLittle = 512ULL << 20;
    if (available < kLittle)
      problem(fmt::format("only {} of memory are available",
                          bytes_text(static_cast<double>(available))),
              "free memory, or raise the limit of the container");
  }

  void shared_memory() {
    struct statvfs disk{};
    const std::string path = options_.root + "/dev/shm";
    if (statvfs(path.c_str(), &disk) != 0) {
      problem("/dev/shm is missing", "mount a tmpfs there; other loaders and NCCL need it");
      return;
    }
    const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
    fact("/dev/shm", fmt::format("{} free; penstock does not need it", bytes_text(free)));
    constexpr double kSmall = 256e6;
    if (free < kSmall)
      problem(fmt::format("/dev/shm has only {} free: NCCL and worker processes of torch use it",
                          bytes_text(free)),
              "docker run --shm-size=8g");
  }

  void limits() {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
      fact("open files", number_text(files.rlim_cur));
      constexpr rlim_t kFew = 1024;
      if (files.rlim_cur < kFew)
        problem(fmt::format("only {} files may be open", files.rlim_cur), "ulimit -n 65536");
    }
    rlimit locked{};
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0)
      fact("locked memory", locked.rlim_cur == RLIM_INFINITY
                                ? "unlimited"
                                : bytes_text(static_cast<double>(locked.rlim_cur)));
    if (group_.pids_max) {
      fact("processes and threads", number_text(*group_.pids_max));
      const std::uint64_t needed = 4ULL * usable_cores() + Pool::kReadingThreadsMax;
      if (*group_.pids_max < needed)
        problem(
            fmt::format("the container may have only {} processes and threads", *group_.pids_max),
            fmt::format("raise pids.max to {} or more", needed));
    }
  }

  void gpu() {
    const std::string driver = first_line(text_of(options_.root + "/proc/driver/nvidia/version"));
    fact("GPU driver", driver.empty() ? "none" : printable(driver));
  }

  /// Libraries loaded twice: two OpenMP runtimes start twice the threads.
  void libraries() {
    std::set<std::string> runtimes;
    std::istringstream lines(text_of(options_.root + "/proc/self/maps"));
    std::string line;
    while (std::getline(lines, line)) {
      const std::size_t at = line.rfind('/');
      if (at == std::string::npos) continue;
      const std::string_view name = std::string_view(line).substr(at + 1);
      for (const std::string_view known : {"libgomp", "libiomp5", "libomp"}) {
        // "libgomp-a34b3233.so.1", but not "libompt.so"
        if (name.starts_with(known) && !name.substr(known.size()).starts_with('t'))
          runtimes.insert(line.substr(line.find('/')));
      }
    }
    if (runtimes.size() < 2) return;
    std::string names;
    for (const std::string& name : runtimes) names += (names.empty() ? "" : ", ") + printable(name);
    problem(fmt::format("{} OpenMP runtimes are loaded: {}", runtimes.size(), names),
            "set OMP_NUM_THREADS to the number of cores divided by that, or install packages that "
            "share one runtime");
  }

  void disk() {
    const auto folder = Io::real().look(options_.data);
    if (!folder || (*folder).kind != FolderEntry::Kind::folder)
      throw ConfigError(fmt::format("doctor: {} is no folder", printable(options_.data)), {},
                        "name a folder with training data");
    constexpr std::size_t kFilesMax = 200;
    constexpr std::uint64_t kBytesMax = 256ULL << 20;
    std::uint64_t bytes = 0;
    std::vector<double> latencies;
    const Nanoseconds began = Clock::real().now();
    read_some(options_.data, 0, [&](const std::string& path, std::uint64_t size) {
      const Nanoseconds from = Clock::real().now();
      const auto content = Io::real().read_whole(path, {.bytes_max = kBytesMax});
      if (content) {
        bytes += size;
        latencies.push_back(std::chrono::duration<double>(Clock::real().now() - from).count());
      }
      return latencies.size() < kFilesMax && bytes < kBytesMax &&
             Clock::real().now() - began < std::chrono::seconds(1);
    });
    if (latencies.empty()) {
      fact("data", "no file was found to read");
      return;
    }
    const double took = std::chrono::duration<double>(Clock::real().now() - began).count();
    std::ranges::sort(latencies);
    const double median = latencies[latencies.size() / 2];
    fact("data",
         fmt::format("{} files read, one after the other: {} each (median), {}/s", latencies.size(),
                     seconds_text(median), bytes_text(static_cast<double>(bytes) / took)));
    constexpr double kSlow = 5e-3;
    constexpr double kSlowRate = 200e6;  // bytes a second: large files take their time
    if (median > kSlow && static_cast<double>(bytes) < kSlowRate * took)
      problem(fmt::format("a file of {} takes {} to read", printable(options_.data),
                          seconds_text(median)),
              "copy the data to a local disk, or cache(\"folder\") what is read");
  }

  /// Calls `visit(path, bytes)` for files, in folders up to four deep, until it returns false.
  template <typename Visit>
  bool read_some(const std::string& folder, unsigned depth, const Visit& visit) {
    constexpr unsigned kDepthMax = 4;
    auto entries = Io::real().list(folder);
    if (!entries) return true;
    std::ranges::sort(*entries, {}, &FolderEntry::name);
    for (const FolderEntry& entry : *entries) {
      const std::string path = folder + "/" + entry.name;
      if (entry.kind == FolderEntry::Kind::file && !visit(path, entry.bytes)) return false;
      if (entry.kind == FolderEntry::Kind::folder && depth < kDepthMax &&
          !read_some(path, depth + 1, visit))
        return false;
    }
    return true;
  }

  const ExamineOptions& options_;
  const CgroupLimits group_ = cgroup_limits(options_.root);
  MachineExamination found_;
};

}  // namespace

std::string MachineExamination::str() const {
  std::size_t width = 0;
  for (const MachineFact& each : facts) width = std::max(width, each.name.size());
  std::string text;
  for (const MachineFact& each : facts)
    text += fmt::format("{:<{}}  {}\n", each.name, width, each.value);
  if (problems.empty()) return text + "\nNothing is wrong.";
  for (const MachineProblem& each : problems)
    text += fmt::format("\n! {}\n  -> {}", each.what, each.remedy);
  return text;
}

std::string MachineExamination::json() const {
  Json json{{"facts", Json::array()}, {"problems", Json::array()}};
  for (const MachineFact& each : facts)
    json["facts"].push_back({{"name", each.name}, {"value", each.value}});
  for (const MachineProblem& each : problems)
    json["problems"].push_back({{"what", each.what}, {"remedy", each.remedy}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

MachineExamination examine_machine(const ExamineOptions& options) {
  return Examination(options).all();
}

}  // namespace penstock
