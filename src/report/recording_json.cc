// tested in src/report/trace_file_test.cc
#include "report/recording_json.h"

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "base/json.h"
#include "penstock/error.h"
#include "trace/histogram.h"

namespace penstock {
namespace {

using trace::DecisionRecord;
using trace::Interval;
using trace::OpRecord;
using trace::PlannedOp;
using trace::Recording;
using trace::ReplicaRecord;
using trace::SlowCall;

/// Writes fields to an object.
struct FieldWriter {
  Json& json;
  template <typename T>
  void operator()(const char* name, const T& value) const {
    json[name] = value;
  }
};
/// Reads them.
struct FieldReader {
  const Json& json;
  template <typename T>
  void operator()(const char* name, T& value) const {
    const auto found = json.find(name);
    if (found == json.end()) return;
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      value = whole_number<T>(*found);
    } else {
      value = found->template get<T>();
    }
  }
};

// Each list of fields is written once, for both directions.

void fields(auto& op, const auto& each)
  requires std::same_as<std::remove_const_t<std::remove_reference_t<decltype(op)>>, PlannedOp>
{
  each("title", op.title);
  each("random", op.random);
  each("cache", op.cache);
  each("repeats", op.repeats);
  each("whole", op.whole);
  each("processes", op.processes);
}

void fields(auto& op, const auto& each)
  requires std::same_as<std::remove_const_t<std::remove_reference_t<decltype(op)>>, OpRecord>
{
  each("title", op.title);
  each("calls", op.calls);
  each("rows", op.rows);
  each("bytes", op.bytes);
  each("seconds", op.seconds);
  each("lock", op.lock);
  each("process", op.process);
  each("read", op.read);
  each("retry", op.retry);
  each("read_bytes", op.read_bytes);
  each("durations", op.durations);
}

void fields(auto& call, const auto& each)
  requires std::same_as<std::remove_const_t<std::remove_reference_t<decltype(call)>>, SlowCall>
{
  each("op", call.op);
  each("sample", call.sample);
  each("file", call.file);
  each("rows", call.rows);
  each("step", call.step);
  each("seconds", call.seconds);
}

void fields(auto& replica, const auto& each)
  requires std::same_as<std::remove_const_t<std::remove_reference_t<decltype(replica)>>,
                        ReplicaRecord>
{
  each("name", replica.name);
  each("steps", replica.steps);
  each("rows", replica.rows);
  each("busy", replica.busy);
  each("waited", replica.waited);
}

void fields(auto& decision, const auto& each)
  requires std::same_as<std::remove_const_t<std::remove_reference_t<decltype(decision)>>,
                        DecisionRecord>
{
  each("at", decision.at);
  each("text", decision.text);
}

void fields(auto& interval, const auto& each)
  requires std::same_as<std::remove_const_t<std::remove_reference_t<decltype(interval)>>, Interval>
{
  each("rows", interval.rows);
  each("waited", interval.waited);
  each("worked", interval.worked);
  each("others", interval.others);
  each("bytes", interval.bytes);
  each("in_flight", interval.in_flight);
  each("window", interval.window);
}

void facts_fields(auto& facts, const auto& each) {
  each("dataset", facts.dataset);
  each("epoch", facts.epoch);
  each("first_step", facts.first_step);
  each("step_rows", facts.step_rows);
  each("shares", facts.shares);
  each("first_share", facts.first_share);
  each("shares_total", facts.shares_total);
  each("stream", facts.stream);
  each("threads", facts.threads);
  each("pool_threads", facts.pool_threads);
  each("cores", facts.cores);
  each("bytes_max", facts.bytes_max);
}

void totals_fields(auto& all, const auto& each) {
  each("cut", all.cut);
  each("ended", all.ended);
  each("wall", all.wall);
  each("steps", all.steps);
  each("rows", all.rows);
  each("tasks", all.tasks);
  each("work", all.work);
  each("others", all.others);
  each("run_delay", all.run_delay);
  each("pulled", all.pulled);
  each("step_bytes", all.step_bytes);
  each("window", all.window);
  each("in_flight_max", all.in_flight_max);
  each("bytes_used_max", all.bytes_used_max);
  each("bytes_limit", all.bytes_limit);
  each("skipped", all.skipped);
  each("events_missed", all.events_missed);
  each("plan", all.plan);
  each("skipped_samples", all.skipped_samples);
}

void wait_fields(auto& waits, const auto& each) {
  each("count", waits.count);
  each("seconds", waits.seconds);
  each("first", waits.first);
  each("longest", waits.longest);
  each("longest_step", waits.longest_step);
  each("busy", waits.busy);
  each("one_busy", waits.one_busy);
  each("pulling", waits.pulling);
  each("at_limit", waits.at_limit);
  each("at_bytes", waits.at_bytes);
  each("none_busy", waits.none_busy);
}

void read_fields(auto& reads, const auto& each) {
  each("count", reads.count);
  each("bytes", reads.bytes);
  each("seconds", reads.seconds);
  each("threads", reads.threads);
  each("latency", reads.latency);
  each("retried", reads.retried);
  each("retries", reads.retries);
}

template <typename T>
Json list_of(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) {
    Json one = Json::object();
    fields(value, FieldWriter{one});
    list.push_back(std::move(one));
  }
  return list;
}
template <typename T>
std::vector<T> from_list(const Json& json, const char* name) {
  std::vector<T> values;
  const auto found = json.find(name);
  if (found == json.end()) return values;
  for (const Json& one : *found) {
    if (!one.is_object())
      throw Json::type_error::create(302, "expected an object, not " + one.dump(), &one);
    T value;
    fields(value, FieldReader{one});
    values.push_back(std::move(value));
  }
  return values;
}

Json ops_json(const std::vector<OpRecord>& ops) {
  Json list = list_of(ops);
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i].cpu) list[i]["cpu"] = *ops[i].cpu;
  return list;
}

const Json& part(const Json& json, const char* name) {
  static const Json none = Json::object();
  const auto found = json.find(name);
  return found == json.end() ? none : *found;
}

}  // namespace

Json json_of(const Recording& recording) {
  Json json = Json::object();
  json["format"] = kTraceFormat;
  totals_fields(recording, FieldWriter{json});
  Json facts = Json::object();
  facts_fields(recording.facts, FieldWriter{facts});
  if (recording.facts.end_step) facts["end_step"] = *recording.facts.end_step;
  facts["ops"] = list_of(recording.facts.ops);
  json["facts"] = std::move(facts);
  Json waits = Json::object();
  wait_fields(recording.waits, FieldWriter{waits});
  json["waits"] = std::move(waits);
  Json reads = Json::object();
  read_fields(recording.reads, FieldWriter{reads});
  json["reads"] = std::move(reads);
  json["ops"] = ops_json(recording.ops);
  json["slowest"] = list_of(recording.slowest);
  json["replicas"] = list_of(recording.replicas);
  json["decisions"] = list_of(recording.decisions);
  json["series"] =
      Json{{"width", recording.series.width}, {"intervals", list_of(recording.series.intervals)}};
  return json;
}

Recording recording_of(const Json& json) {
  const int format = whole_number<int>(json.at("format"));
  if (format != kTraceFormat)
    throw ConfigError(fmt::format("trace: the file has format {}, this version reads format {}",
                                  format, kTraceFormat),
                      {}, "open it with the version of penstock that wrote it");
  Recording made;
  totals_fields(made, FieldReader{json});
  const Json& facts = part(json, "facts");
  facts_fields(made.facts, FieldReader{facts});
  if (const auto end = facts.find("end_step"); end != facts.end())
    made.facts.end_step = whole_number<std::uint64_t>(*end);
  made.facts.ops = from_list<PlannedOp>(facts, "ops");
  wait_fields(made.waits, FieldReader{part(json, "waits")});
  read_fields(made.reads, FieldReader{part(json, "reads")});
  made.ops = from_list<OpRecord>(json, "ops");
  for (std::size_t i = 0; i < made.ops.size(); ++i) {
    const Json& op = json["ops"][i];
    if (const auto cpu = op.find("cpu"); cpu != op.end()) made.ops[i].cpu = cpu->get<double>();
    if (made.ops[i].durations.size() > trace::kBuckets)
      made.ops[i].durations.resize(trace::kBuckets);
  }
  made.slowest = from_list<SlowCall>(json, "slowest");
  made.replicas = from_list<ReplicaRecord>(json, "replicas");
  made.decisions = from_list<DecisionRecord>(json, "decisions");
  const Json& series = part(json, "series");
  if (const auto width = series.find("width"); width != series.end())
    made.series.width = whole_number<std::uint64_t>(*width);
  made.series.intervals = from_list<Interval>(series, "intervals");
  return made;
}

}  // namespace penstock
