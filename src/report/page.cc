// tested in src/feed/save_report_test.cc and tests/page_test.py
#include "report/page.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/json.h"
#include "report/recording_json.h"
#include "report/words.h"

namespace penstock {
namespace {

constexpr std::size_t kEventsMax = 1'500'000;

std::string base64(std::span<const unsigned char> bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? bytes[at + i] : std::uint32_t{0});
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

/// Columns of numbers, each aligned to 8 bytes, as the page reads them.
class Columns {
 public:
  template <typename T, typename Value>
  void add(std::span<const trace::Event> events, Value value) {
    const std::size_t at = bytes_.size();
    const std::size_t size = events.size() * sizeof(T);
    bytes_.resize(at + (size + 7) / 8 * 8);
    for (std::size_t i = 0; i < events.size(); ++i) {
      const T one = value(events[i]);
      std::memcpy(&bytes_[at + i * sizeof(T)], &one, sizeof(T));
    }
  }
  [[nodiscard]] std::string text() const { return base64(bytes_); }

 private:
  std::vector<unsigned char> bytes_;
};

std::uint32_t limited(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

std::string events_text(std::span<const trace::Event> events) {
  using trace::Event;
  constexpr double kMicro = 1e-3;
  Columns columns;
  columns.add<double>(events, [](const Event& e) { return static_cast<double>(e.start) * kMicro; });
  columns.add<double>(events, [](const Event& e) {
    return static_cast<double>(e.end - std::min(e.start, e.end)) * kMicro;
  });
  columns.add<std::uint32_t>(events, [](const Event& e) { return limited(e.step); });
  columns.add<std::uint32_t>(events, [](const Event& e) { return e.rows; });
  columns.add<std::uint32_t>(events, [](const Event& e) { return limited(e.sample); });
  columns.add<std::uint16_t>(events, [](const Event& e) {
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(e.thread, UINT16_MAX));
  });
  columns.add<std::uint16_t>(events, [](const Event& e) { return e.op; });
  columns.add<std::uint8_t>(events,
                            [](const Event& e) { return static_cast<std::uint8_t>(e.kind); });
  return columns.text();
}

Json json_of_ops(const Report& report) {
  Json ops = Json::array();
  for (const OpReport& op : report.ops)
    ops.push_back({{"name", op.name},
                   {"calls", op.calls},
                   {"rows", op.rows},
                   {"seconds", op.seconds},
                   {"share", op.share},
                   {"p50", op.p50},
                   {"p99", op.p99},
                   {"bytes", op.bytes},
                   {"cpu_seconds", op.cpu_seconds},
                   {"lock_seconds", op.lock_seconds},
                   {"process_seconds", op.process_seconds},
                   {"read_seconds", op.read_seconds},
                   {"retry_seconds", op.retry_seconds},
                   {"blocked_seconds", op.blocked_seconds}});
  return ops;
}

Json json_of_report(const Report& report) {
  Json json{{"epoch", report.epoch},
            {"steps", report.steps},
            {"rows", report.rows},
            {"wait_share", report.wait_share()},
            {"wall_seconds", report.wall_seconds},
            {"input_rows_per_second", report.input_rows_per_second},
            {"consumer_rows_per_second", report.consumer_rows_per_second},
            {"skipped", report.skipped},
            {"retried", report.retried},
            {"cause", cause_name(report.cause)},
            {"verdict", report.verdict},
            {"advice", report.advice},
            {"cut", report.cut},
            {"plan", report.plan},
            {"retries", report.retries},
            {"skipped_samples", report.skipped_samples},
            {"ops", json_of_ops(report)}};
  Json& slowest = json["slowest"] = Json::array();
  for (const SlowSample& slow : report.slowest)
    slowest.push_back({{"op", slow.op},
                       {"sample", slow.sample},
                       {"file", slow.file},
                       {"rows", slow.rows},
                       {"step", slow.step},
                       {"seconds", slow.seconds}});
  Json& replicas = json["replicas"] = Json::array();
  for (const ReplicaReport& replica : report.replicas)
    replicas.push_back({{"name", replica.name},
                        {"rows", replica.rows},
                        {"busy_seconds", replica.busy_seconds},
                        {"wait_seconds", replica.wait_seconds}});
  Json& changes = json["what_if"] = Json::array();
  for (const WhatIf& each : report.what_if)
    changes.push_back({{"change", each.change}, {"gain", each.gain}, {"text", each.text}});
  return json;
}

/// In a script element only "</" and "<!" have a meaning.
std::string in_script(std::string text) {
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1))
    text.replace(at, 1, "\\u003c");
  return text;
}

Json page_data(const Report& report, std::size_t events) {
  const trace::Recording& recording = *report.recording;
  Json totals = json_of(recording);
  std::vector<std::string> ops;
  for (const std::string& title : recording.op_titles) ops.push_back(plain_name(title));
  return {{"version", PENSTOCK_VERSION},
          {"dataset", recording.facts.dataset},
          {"report", json_of_report(report)},
          {"series", totals["series"]},
          {"decisions", totals["decisions"]},
          {"threads", recording.threads},
          {"threadCount", recording.facts.threads},
          {"cores", recording.facts.cores},
          {"bytesLimit", recording.bytes_limit},
          {"ops", ops},
          {"events", events},
          {"eventsMissed", recording.events_missed + (recording.events.size() - events)}};
}

}  // namespace

std::string page_of(const Report& report) {
  std::span<const trace::Event> events = report.recording->events;
  if (events.size() > kEventsMax) events = events.last(kEventsMax);
  const std::string data = in_script(
      page_data(report, events.size()).dump(-1, ' ', false, Json::error_handler_t::replace));
  const PageAssets& assets = page_assets();
  const std::string binary = events_text(events);
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"%CSS%", assets.css}, {"%DATA%", data}, {"%EVENTS%", binary}, {"%JS%", assets.js}};
  std::string page;
  page.reserve(assets.html.size() + assets.css.size() + assets.js.size() + data.size() +
               binary.size());
  std::string_view rest = assets.html;
  for (const auto& [mark, text] : parts) {
    const std::size_t at = rest.find(mark);
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

}  // namespace penstock
