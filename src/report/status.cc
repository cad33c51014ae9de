// tested in src/feed/status_test.cc
#include "report/status.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "base/report.h"
#include "penstock/error.h"
#include "penstock/io.h"
#include "report/run_report.h"
#include "report/words.h"
#include "trace/recorder.h"

namespace penstock {
namespace {

constexpr std::size_t kFileBytes = 1 << 16;
constexpr std::uint64_t kMagic = 0x31535450'4b545350;  // "PSTKPTS1"
constexpr std::chrono::milliseconds kEvery{500};
constexpr std::size_t kRunsMax = 32;
constexpr std::string_view kPrefix = "penstock-";
constexpr std::string_view kSuffix = ".status";

/// The head of the file. The number is odd while the text is written.
struct Head {
  std::uint64_t magic;
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> bytes;  // of the text, which follows
};
constexpr std::size_t kTextMax = kFileBytes - sizeof(Head);

double wall_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string text_of(const std::string& path) {
  auto text = Io::real().read_text(path, 1 << 20);
  return text ? *std::move(text) : std::string();
}

/// The resident memory of this process, in bytes.
std::uint64_t resident_bytes() {
  const std::string text = text_of("/proc/self/statm");
  const std::size_t space = text.find(' ');
  std::uint64_t pages = 0;
  if (space == std::string::npos) return 0;
  std::from_chars(text.data() + space + 1, text.data() + text.size(), pages);
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Rows per second over the last intervals.
double recent_rate(const trace::TimeSeries::Copy& series, std::uint64_t since_start) {
  constexpr std::uint64_t kLatest = 8;
  if (series.width == 0) return 0;
  const std::uint64_t now = since_start / series.width;
  const std::uint64_t from = now - std::min(now, kLatest - 1);
  std::uint64_t rows = 0;
  for (std::uint64_t i = from; i <= now && i < series.intervals.size(); ++i)
    rows += series.intervals[i].rows;
  const std::uint64_t took = since_start - from * series.width;
  return took == 0 ? 0 : static_cast<double>(rows) * 1e9 / static_cast<double>(took);
}

std::uint64_t since_start(const trace::Recorder& recorder) {
  const auto now =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, recorder.clock().now().count()));
  return now - std::min(now, recorder.began());
}

Json json_of_run(const trace::Recorder& recorder) {
  const auto recording = std::make_shared<trace::Recording>(recorder.totals());
  const Report report = report_of(recording);
  Json run{{"dataset", recording->facts.dataset},
           {"epoch", recording->facts.epoch},
           {"steps", recording->facts.first_step + recording->steps},
           {"rows", recording->rows},
           {"rows_per_second", recent_rate(recording->series, since_start(recorder))},
           {"wait_share", report.wait_share()},
           {"in_flight", recording->series.intervals.empty()
                             ? std::uint64_t{0}
                             : recording->series.intervals.back().in_flight},
           {"bytes_used", recording->series.intervals.empty()
                              ? std::uint64_t{0}
                              : recording->series.intervals.back().bytes},
           {"threads", recording->facts.threads},
           {"verdict", report.verdict}};
  if (recording->facts.end_step) run["end_step"] = *recording->facts.end_step;
  return run;
}

std::string status_json(const std::string& command) {
  Json runs = Json::array();
  std::uint64_t used = 0;
  for (const auto& recorder : trace::live_runs()) {
    if (runs.size() == kRunsMax) break;
    if (!recorder->goes_on()) continue;
    runs.push_back(json_of_run(*recorder));
    used = std::max(used, runs.back()["bytes_used"].get<std::uint64_t>());
  }
  const Json json{{"written", wall_clock_seconds()},
                  {"command", command},
                  {"resident_bytes", resident_bytes()},
                  {"bytes_used", used},
                  {"runs", std::move(runs)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string command_line() {
  std::string text = text_of("/proc/self/cmdline");
  std::ranges::replace(text, '\0', ' ');
  constexpr std::size_t kLong = 300;
  text.resize(std::min(text.size(), kLong));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return printable(text);
}

std::optional<std::uint64_t> process_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  std::uint64_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  if (process == 0 || process > INT32_MAX) return std::nullopt;
  return process;
}

/// The text of a status file's bytes; nothing if they are damaged, or written at this moment.
std::optional<std::string> text_in(const std::string& bytes) {
  if (bytes.size() < sizeof(Head)) return std::nullopt;
  std::uint64_t head[3];
  std::memcpy(head, bytes.data(), sizeof head);
  if (head[0] != kMagic || head[1] % 2 != 0 || head[2] > bytes.size() - sizeof(Head))
    return std::nullopt;
  return bytes.substr(sizeof(Head), head[2]);
}

RunStatus run_of(const Json& json) {
  RunStatus run;
  run.dataset = without_controls(json.at("dataset").get<std::string>());
  run.epoch = whole_number<std::uint64_t>(json.at("epoch"));
  run.steps = whole_number<std::uint64_t>(json.at("steps"));
  if (const auto end = json.find("end_step"); end != json.end())
    run.end_step = whole_number<std::uint64_t>(*end);
  run.rows = whole_number<std::uint64_t>(json.at("rows"));
  run.rows_per_second = json.at("rows_per_second").get<double>();
  run.wait_share = json.at("wait_share").get<double>();
  run.in_flight = whole_number<std::uint64_t>(json.at("in_flight"));
  run.verdict = without_controls(json.at("verdict").get<std::string>());
  return run;
}

std::optional<ProcessStatus> status_of(const std::string& bytes, std::uint64_t process) {
  const auto text = text_in(bytes);
  const auto json = text ? parse_json(*text) : std::nullopt;
  if (!json) return std::nullopt;
  try {
    ProcessStatus status;
    status.process = process;
    status.age_seconds = std::max(0.0, wall_clock_seconds() - json->at("written").get<double>());
    status.command = without_controls(json->at("command").get<std::string>());
    status.resident_bytes = whole_number<std::uint64_t>(json->at("resident_bytes"));
    status.bytes_used = whole_number<std::uint64_t>(json->at("bytes_used"));
    for (const Json& run : json->at("runs")) status.runs.push_back(run_of(run));
    return status;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

StatusWriter::StatusWriter(const std::string& folder, std::uint64_t process)
    : path_(fmt::format("{}/{}{}{}", folder, kPrefix, process, kSuffix)),
      owner_(static_cast<std::uint64_t>(getpid())),
      command_(command_line()) {
  if (auto made = Io::real().create_folder(folder); !made)
    throw ResourceError(fmt::format("PENSTOCK_STATUS: {}", made.failure().message), {},
                        "name a folder that this process may write to");
  // A new file: the old one may belong to a process of another user with the same number.
  if (auto gone = Io::real().remove(path_); !gone)
    throw ResourceError(fmt::format("PENSTOCK_STATUS: {}", gone.failure().message), {},
                        "remove that file");
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  struct stat made_file{};
  if (file >= 0 && fstat(file, &made_file) == 0) inode_ = made_file.st_ino;
  const bool sized = file >= 0 && posix_fallocate(file, 0, kFileBytes) == 0;
  void* const map =
      sized ? mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (file >= 0) close(file);
  if (map == MAP_FAILED)
    throw ResourceError(fmt::format("PENSTOCK_STATUS: {} cannot be written", printable(path_)), {},
                        "check the folder, and the space on the disk");
  map_ = static_cast<std::byte*>(map);
  thread_ = std::make_unique<Thread>("ps-status", [this] { write_until_stopped(); });
}

StatusWriter::~StatusWriter() {
  if (static_cast<std::uint64_t>(getpid()) != owner_) {  // the child of a fork has no thread
    (void)thread_.release();
    return;
  }
  {
    Lock lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }
  thread_.reset();
  munmap(map_, kFileBytes);
  // A writer that was made meanwhile has a new file of the same name.
  struct stat now{};
  if (lstat(path_.c_str(), &now) == 0 && now.st_ino == inode_) (void)Io::real().remove(path_);
}

void StatusWriter::write_now() {
  const std::string text = status_json(command_);
  if (text.size() > kTextMax) return;
  Lock lock(writing_);
  auto* const head = reinterpret_cast<Head*>(map_);
  head->version.fetch_add(1);
  head->magic = kMagic;
  std::memcpy(map_ + sizeof(Head), text.data(), text.size());
  head->bytes.store(text.size());
  head->version.fetch_add(1);
}

void StatusWriter::write_until_stopped() {
  while (true) {
    write_now();
    Lock lock(mutex_);
    if (!stopping_) stopped_.wait_for(mutex_, kEvery);
    if (stopping_) return;
  }
}

std::shared_ptr<StatusWriter> StatusWriter::shared() {
  static Mutex& mutex = *new Mutex;
  static std::weak_ptr<StatusWriter>& current = *new std::weak_ptr<StatusWriter>;
  static bool failed = false;
  const char* const folder = std::getenv("PENSTOCK_STATUS");  // NOLINT(concurrency-mt-unsafe)
  if (folder == nullptr || *folder == 0) return nullptr;
  const auto process = static_cast<std::uint64_t>(getpid());
  Lock lock(mutex);
  if (failed) return nullptr;
  if (auto writer = current.lock(); writer && writer->owner_ == process) return writer;
  try {
    auto writer = std::make_shared<StatusWriter>(folder, process);
    current = writer;
    return writer;
  } catch (const Error& error) {
    failed = true;
    report(error.what());
    return nullptr;
  }
}

std::vector<ProcessStatus> read_statuses(const std::string& folder) {
  const auto entries = Io::real().list(folder);
  if (!entries)
    throw ConfigError(fmt::format("top: {}", entries.failure().message), {},
                      "start the programs with PENSTOCK_STATUS=FOLDER, and name that folder");
  std::vector<ProcessStatus> processes;
  for (const FolderEntry& entry : *entries) {
    const auto process = process_of(entry.name);
    if (!process || entry.kind != FolderEntry::Kind::file) continue;
    constexpr int kTries = 5;  // one may meet the file while it is written
    for (int i = 0; i < kTries; ++i) {
      const auto bytes = Io::real().read_text(folder + "/" + entry.name, kFileBytes);
      auto status = bytes ? status_of(*bytes, *process) : std::nullopt;
      if (!status) continue;
      status->alive = kill(static_cast<pid_t>(*process), 0) == 0 || errno == EPERM;
      processes.push_back(*std::move(status));
      break;
    }
  }
  std::ranges::sort(processes, {}, &ProcessStatus::process);
  return processes;
}

std::string status_text(const std::vector<ProcessStatus>& processes) {
  if (processes.empty()) return "No process runs a loader with PENSTOCK_STATUS set to this folder.";
  std::string text;
  for (const ProcessStatus& each : processes) {
    if (!text.empty()) text += "\n\n";
    text += fmt::format("{}  {}\n  memory {}, of it {} for batches in preparation", each.process,
                        each.command, bytes_text(static_cast<double>(each.resident_bytes)),
                        bytes_text(static_cast<double>(each.bytes_used)));
    if (!each.alive)
      text += fmt::format("\n  This process ended without notice; its last news is {} old.",
                          seconds_text(each.age_seconds));
    for (const RunStatus& run : each.runs) {
      text += fmt::format(
          "\n  {}: epoch {}, step {}{}, {} samples/s, waiting {}, {} in preparation\n    {}",
          run.dataset.empty() ? "dataset" : run.dataset, run.epoch, number_text(run.steps),
          run.end_step ? " of " + number_text(*run.end_step) : "", rate_text(run.rows_per_second),
          percent_text(run.wait_share), counted_text(run.in_flight, "step"), run.verdict);
    }
  }
  return text;
}

}  // namespace penstock
