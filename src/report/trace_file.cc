#include "report/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "report/recording_json.h"
#include "report/words.h"

namespace penstock {
namespace {

using trace::Event;
using trace::Kind;
using trace::Recording;

constexpr std::string_view kHead = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
constexpr std::string_view kTail = "\n]}\n";
constexpr std::string_view kTotals = "penstock_totals";
constexpr std::uint64_t kFileMax = 4ULL << 30;
constexpr std::size_t kLineMax = 16ULL << 20;
constexpr std::uint32_t kReplicaLane = 1'000'000;  // lanes of replicas begin here
constexpr std::array<const char*, trace::kKinds> kKindNames{"task", "pull", "ready", "delivered",
                                                            "wait", "op",   "read",  "replica"};

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The name of what a thread does, in an existing lane.
std::string event_name(const Event& event, const std::vector<std::string>& op_titles) {
  if (event.kind == Kind::op)
    return event.op < op_titles.size() && !op_titles[event.op].empty()
               ? plain_name(op_titles[event.op])
               : std::string("op");
  if (event.kind == Kind::replica) return fmt::format("replica {}", event.op);
  return kKindNames[static_cast<std::size_t>(event.kind)];
}

bool is_instant(const Event& event) {
  return event.kind == Kind::ready || event.kind == Kind::delivered;
}

std::string thread_line(std::uint32_t lane, const std::string& name) {
  return fmt::format(R"({{"ph":"M","name":"thread_name","pid":1,"tid":{},"args":{{"name":{}}}}})",
                     lane, quoted(name));
}

/// Microseconds with three digits: nanoseconds are kept.
std::string microseconds(std::uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string event_line(const Event& event, const std::vector<std::string>& op_titles) {
  const std::uint32_t lane =
      event.kind == Kind::replica ? kReplicaLane + event.op : event.thread + 1;
  const char* const kind = kKindNames[static_cast<std::size_t>(event.kind)];
  std::string text;
  if (is_instant(event)) {
    text = fmt::format(R"({{"ph":"i","s":"t","name":"{} {}","cat":"{}","pid":1,"tid":{},"ts":{})",
                       kind, event.step, kind, lane, microseconds(event.end));
  } else {
    const std::uint64_t took = event.end - std::min(event.end, event.start);
    text = fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":1,"tid":{},"ts":{},"dur":{})",
                       quoted(event_name(event, op_titles)), kind, lane, microseconds(event.start),
                       microseconds(took));
  }
  text += fmt::format(R"(,"args":{{"step":{},"rows":{})", event.step, event.rows);
  if (event.kind == Kind::op)
    text += fmt::format(R"(,"sample":{},"op":{})", event.sample, event.op);
  return text + "}}";
}

/// Nanoseconds of a number of microseconds.
std::uint64_t nanoseconds_of(const Json& json) {
  const double value = json.get<double>() * 1000;
  constexpr double kMax = 9e18;
  return value > 0 && value < kMax ? static_cast<std::uint64_t>(value + 0.5) : 0;
}

class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  Recording parse(std::string_view text) {
    if (!text.starts_with(kHead.substr(0, kHead.size() - 1)))
      throw not_a_trace("it does not begin like one");
    bool whole = false;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      if (line == "]}") whole = true;
      if (line.ends_with(',')) line.remove_suffix(1);
      if (line.starts_with("{\"ph\"")) take(line);
    }
    if (!totals_) {
      totals_.emplace();
      totals_->cut = "it ends before any numbers were written";
    } else if (!whole && totals_->cut.empty()) {
      totals_->cut = "the run goes on, or its program ended before it was complete";
    }
    totals_->events = std::move(events_);
    totals_->op_titles = std::move(op_titles_);
    totals_->threads = std::move(threads_);
    return std::move(*totals_);
  }

 private:
  [[nodiscard]] ConfigError not_a_trace(const std::string& why) const {
    return ConfigError(fmt::format("{} is no trace of penstock: {}", printable(name_), why), {},
                       "traces are written by Report::save(\"run.json\") and report_dir");
  }

  void take(std::string_view line) {
    if (line.size() > kLineMax) return;
    const auto json = parse_json(line);
    if (!json) return;  // the last line of a file that was cut
    try {
      take(*json);
    } catch (const Json::exception& error) {
      throw not_a_trace(error.what());
    }
  }

  void take(const Json& json) {
    const std::string& phase = json.at("ph").get_ref<const std::string&>();
    if (phase == "M") {
      if (json.at("name") == kTotals) {
        totals_ = recording_of(json.at("args"));
      } else if (json.at("name") == "thread_name") {
        name_thread(whole_number<std::uint32_t>(json.at("tid")), json.at("args").at("name"));
      }
      return;
    }
    const auto kind = std::ranges::find(kKindNames, json.at("cat").get<std::string>(),
                                        [](const char* name) { return std::string(name); });
    if (kind == kKindNames.end()) return;
    Event event;
    event.kind = static_cast<Kind>(kind - kKindNames.begin());
    event.start = nanoseconds_of(json.at("ts"));
    event.end = event.start + (json.contains("dur") ? nanoseconds_of(json["dur"]) : 0);
    const auto lane = whole_number<std::uint32_t>(json.at("tid"));
    event.thread = lane >= kReplicaLane ? 0 : lane - std::min(lane, 1U);
    const Json& args = json.at("args");
    event.step = whole_number<std::uint64_t>(args.at("step"));
    event.rows = whole_number<std::uint32_t>(args.at("rows"));
    if (event.kind == Kind::op) {
      event.sample = whole_number<std::uint64_t>(args.at("sample"));
      event.op = whole_number<std::uint16_t>(args.at("op"));
      if (op_titles_.size() <= event.op) op_titles_.resize(event.op + std::size_t{1});
      if (op_titles_[event.op].empty()) op_titles_[event.op] = json.at("name").get<std::string>();
    } else if (event.kind == Kind::replica) {
      event.op = static_cast<std::uint16_t>(lane - kReplicaLane);
    }
    events_.push_back(event);
  }

  void name_thread(std::uint32_t lane, const Json& name) {
    constexpr std::uint32_t kLanesMax = 1U << 16;
    if (lane == 0 || lane > kLanesMax) return;
    if (threads_.size() < lane) threads_.resize(lane);
    threads_[lane - 1] = name.get<std::string>();
  }

  const std::string& name_;
  std::optional<Recording> totals_;
  std::vector<Event> events_;
  std::vector<std::string> op_titles_;
  std::vector<std::string> threads_;
};

}  // namespace

TraceWriter::TraceWriter(Io& io, const std::string& path, std::uint64_t bytes_max)
    : bytes_max_(bytes_max) {
  auto file = io.create(path);
  if (!file) {
    failure_ = file.failure().message;
    return;
  }
  file_ = std::move(*file);
  write(std::string(kHead) +
        R"({"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"penstock"}})");
}

void TraceWriter::write(const std::string& text) {
  if (!file_ || !failure_.empty()) return;
  const std::string_view part = text;
  if (auto done = file_->append({&part, 1}); !done) failure_ = done.failure().message;
}

void TraceWriter::add(const std::vector<Event>& events, const std::vector<std::string>& op_titles,
                      const std::vector<std::string>& threads) {
  if (!file_ || !failure_.empty()) return;
  std::string text;
  for (; threads_named_ < threads.size(); ++threads_named_)
    text += ",\n" +
            thread_line(static_cast<std::uint32_t>(threads_named_ + 1), threads[threads_named_]);
  for (const Event& event : events) {
    if (event_bytes_ > bytes_max_) {
      ++left_out_;
      continue;
    }
    const std::string line = ",\n" + event_line(event, op_titles);
    event_bytes_ += line.size();
    text += line;
    constexpr std::size_t kEnough = 1U << 20;
    if (text.size() > kEnough) write(std::exchange(text, {}));
  }
  if (!text.empty()) write(text);
}

void TraceWriter::add_totals(Recording totals) {
  totals.events_missed += left_out_;
  write(fmt::format(",\n{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":1,\"tid\":0,\"args\":{}}}", kTotals,
                    json_of(totals).dump(-1, ' ', false, Json::error_handler_t::replace)));
}

void TraceWriter::close() {
  write(std::string(kTail));
  file_.reset();
}

void write_trace(const std::string& path, const Recording& recording) {
  if (auto gone = Io::real().remove(path); !gone)
    throw ResourceError(fmt::format("the trace could not be replaced: {}", gone.failure().message));
  TraceWriter writer(Io::real(), path, UINT64_MAX);
  std::vector<Event> events = recording.events;
  // An event begins before those inside it.
  std::ranges::stable_sort(events, {}, [](const Event& event) {
    return std::pair(is_instant(event) ? event.end : event.start, UINT64_MAX - event.end);
  });
  writer.add(events, recording.op_titles, recording.threads);
  writer.add_totals(recording);
  writer.close();
  if (!writer.failure().empty())
    throw ResourceError(fmt::format("the trace could not be written: {}", writer.failure()), {},
                        "check the folder, and the space on the disk");
}

Recording parse_trace(std::string_view text, const std::string& name) {
  return Parser(name).parse(text);
}

Recording read_trace(const std::string& path) {
  const auto text = Io::real().read_text(path, kFileMax);
  if (!text)
    throw ConfigError(fmt::format("trace: {}", text.failure().message), {},
                      "name a file that Report::save or report_dir wrote");
  return parse_trace(*text, path);
}

}  // namespace penstock
