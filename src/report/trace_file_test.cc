#include "report/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/json.h"
#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "report/recording_json.h"
#include "report/run_report.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using trace::Event;
using trace::Kind;
using trace::Recording;

Recording recorded() {
  Recording made;
  made.facts = {.dataset = "photos", .epoch = 3, .end_step = 7, .threads = 2, .cores = 2};
  made.facts.ops = {{.title = "decode#1", .random = true, .processes = 2}};
  made.wall = 1.5;
  made.steps = 7;
  made.rows = 70;
  made.waits = {.count = 2, .seconds = 0.5, .first = 0.25, .longest = 0.3, .longest_step = 4};
  made.work = 2.5;
  made.ops = {{.title = "decode#1",
               .calls = 70,
               .rows = 70,
               .bytes = 9,
               .seconds = 2,
               .cpu = 0.5,
               .durations = {0, 1, 2}},
              {.title = "odd \"name\" <>\n", .calls = 1, .rows = 1, .seconds = 0.1}};
  made.slowest = {{"decode#1", "3 of source 0", "a/b.png", 1, 2, 0.25}};
  made.replicas = {{"replica cpu:0", 7, 70, 0.5, 0.25}};
  made.decisions = {{0.25, "3 steps ahead"}};
  made.reads = {.count = 4, .bytes = 100, .seconds = 0.125, .retried = 1, .retries = {"EIO"}};
  made.series = {1000, {{1, 2, 3, 4, 5, 6, 7}}};
  made.plan = "a plan";
  made.skipped_samples = {"step 1"};
  made.threads = {"main", "ps-0"};
  made.op_titles = {"decode#1", ""};
  made.events = {{Kind::block, 0, 10, 1, 1000, 9001, 0, 0, 1},
                 {Kind::op, 0, 1, 1, 1500, 2500, 0, UINT64_MAX, 1},
                 {Kind::ready, 0, 10, 1, 1000, 9001, 0, 0, 1},
                 {Kind::waited, 0, 0, 1, 0, 9500, 0, 0, 0},
                 {Kind::delivered, 0, 10, 1, 9500, 9500, 0, 0, 0},
                 {Kind::replica, 0, 10, 1, 9600, 9900, 2, 0, 0}};
  return made;
}

std::string file_of(const Recording& recording) {
  const TempFolder folder;
  const std::string path = folder.path() + "/run.json";
  write_trace(path, recording);
  return *Io::real().read_text(path, 1U << 30);
}

TEST(TraceFileTest, ARecordingIsReadAsItWasWritten) {
  const Recording before = recorded();
  const Recording after = parse_trace(file_of(before), "run.json");
  const auto text = [](const Recording& recording) {
    return json_of(recording).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  EXPECT_EQ(text(after), text(before));
  EXPECT_THAT(after.cut, IsEmpty());
  ASSERT_EQ(after.events.size(), before.events.size());
  std::map<Kind, Event> events;
  for (const Event& event : after.events) events[event.kind] = event;
  EXPECT_EQ(events[Kind::block].start, 1000U);
  EXPECT_EQ(events[Kind::block].end, 9001U);
  EXPECT_EQ(events[Kind::block].thread, 1U);
  EXPECT_EQ(events[Kind::op].sample, UINT64_MAX);
  EXPECT_EQ(events[Kind::replica].op, 2U);
  EXPECT_EQ(events[Kind::delivered].step, 1U);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(report_of(std::make_shared<Recording>(after)).str(),
            report_of(std::make_shared<Recording>(before)).str());
}

TEST(TraceFileTest, TheFileIsWhatChromeReads) {
  const auto json = parse_json(file_of(recorded()));
  ASSERT_TRUE(json);
  const Json& events = json->at("traceEvents");
  double last = 0;
  std::size_t spans = 0;
  for (const Json& event : events) {
    ASSERT_TRUE(event.contains("ph") && event.contains("pid") && event.contains("tid") &&
                event.contains("name"));
    if (event["ph"] == "M") continue;
    EXPECT_GE(event["ts"].get<double>(), last);
    last = event["ts"].get<double>();
    if (event["ph"] != "X") continue;
    ++spans;
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  EXPECT_EQ(spans, 4U);
}

TEST(TraceFileTest, AFileThatIsCutAnywhereIsReadOrRefusedAndSaysThatItIsCut) {
  const std::string whole = file_of(recorded());
  std::size_t with_totals = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      const Recording read = parse_trace(whole.substr(0, size), "run.json");
      if (size + 4 < whole.size()) {
        EXPECT_THAT(read.cut, testing::Not(IsEmpty())) << size;
      }
      if (read.steps > 0) ++with_totals;
    } catch (const ConfigError&) {
      EXPECT_LT(size, 60U) << "only a file without its first line is refused";
    }
  }
  EXPECT_GT(with_totals, 0U);
}

TEST(TraceFileTest, OtherFilesAreRefused) {
  for (const char* text : {"", "{}", "[1, 2]", "{\"traceEvents\":[]}", "\xff\xfe"})
    EXPECT_THROW(parse_trace(text, "other.json"), ConfigError) << text;
  EXPECT_THROW(read_trace("/nowhere/run.json"), ConfigError);
}

TEST(TraceFileTest, AnotherVersionIsRefusedWithBothNumbers) {
  std::string text = file_of(recorded());
  const std::string mine = "\"format\":1";
  text.replace(text.find(mine), mine.size(), "\"format\":9");
  try {
    parse_trace(text, "run.json");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the file has format 9, this version reads format 1"));
  }
}

TEST(TraceFileTest, ValuesOfTheWrongTypeAreRefused) {
  for (const auto& [from, to] : {std::pair("\"steps\":7", "\"steps\":\"7\""),
                                 {"\"rows\":70", "\"rows\":-70"},
                                 {"\"ops\":[", "\"ops\":[7,"},
                                 {"\"tid\":2,\"ts\"", "\"tid\":1e30,\"ts\""}}) {
    std::string text = file_of(recorded());
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), std::string(from).size(), to);
    EXPECT_THROW(parse_trace(text, "run.json"), ConfigError) << to;
  }
}

TEST(TraceFileTest, EventsBeyondTheLimitAreCounted) {
  const TempFolder folder;
  const std::string path = folder.path() + "/run.json";
  const Recording recording = recorded();
  TraceWriter writer(Io::real(), path, 1000);
  for (int i = 0; i < 100; ++i)
    writer.add(recording.events, recording.op_titles, recording.threads);
  writer.add_totals(recording);
  writer.close();
  const Recording read = read_trace(path);
  EXPECT_GT(read.events_missed, 500U);
  EXPECT_EQ(read.events.size() + read.events_missed, 600U);
  EXPECT_EQ(read.steps, 7U);
}

TEST(TraceFileTest, AFileThatCannotBeWrittenIsAnErrorWithItsName) {
  EXPECT_THROW(write_trace("/nowhere/run.json", recorded()), ResourceError);
  TraceWriter writer(Io::real(), "/nowhere/run.json", 1000);
  writer.add(recorded().events, {}, {});
  EXPECT_THAT(writer.failure(), HasSubstr("/nowhere/run.json"));
}

}  // namespace
}  // namespace penstock
