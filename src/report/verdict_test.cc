#include "report/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "report/run_report.h"
#include "trace/histogram.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using trace::OpRecord;
using trace::Recording;

/// Ten seconds on two threads and two cores, with one op that computes all the time.
Recording busy() {
  Recording made;
  made.facts = {.threads = 2, .pool_threads = 2, .cores = 2, .bytes_max = 1U << 30};
  made.facts.ops = {{.title = "decode#1"}};
  made.wall = 10;
  made.steps = 100;
  made.rows = 6400;
  made.waits = {.count = 100, .seconds = 8, .first = 0.05, .busy = 16};
  made.tasks = 6400;
  made.work = 20;
  made.ops = {{.title = "decode#1", .calls = 6400, .rows = 6400, .seconds = 19, .cpu = 1.0}};
  made.window = 8;
  return made;
}

Report report(const Recording& recording) {
  return report_of(std::make_shared<Recording>(recording));
}

TEST(VerdictTest, NamesTheOpThatKeepsAllThreadsBusy) {
  const Report found = report(busy());
  EXPECT_EQ(found.cause, Cause::compute);
  EXPECT_EQ(found.verdict,
            "Training waited 80 % of the time for input: decode takes 100 % of the work and both "
            "threads are busy.");
}

TEST(VerdictTest, AnInputThatKeepsUpIsHealthyAndHasHeadroom) {
  Recording recording = busy();
  recording.waits = {.count = 1, .seconds = 0.1, .first = 0.1, .busy = 0.2};
  recording.work = 4;
  recording.ops[0].seconds = 3.8;
  const Report found = report(recording);
  EXPECT_EQ(found.cause, Cause::healthy);
  EXPECT_THAT(found.verdict, HasSubstr("Training waited 1 % of the time for input"));
  EXPECT_THAT(found.verdict, HasSubstr("5.0 times as fast as training asks"));
  EXPECT_NEAR(found.consumer_rows_per_second, 6400 / 9.9, 1);
  EXPECT_NEAR(found.input_rows_per_second, 6400 / 2.0, 1);
}

TEST(VerdictTest, NothingDeliveredHasNoCause) {
  EXPECT_EQ(report({}).cause, Cause::nothing_ran);
}

TEST(VerdictTest, TheFirstBatchAloneIsAStartUp) {
  Recording recording = busy();
  recording.waits = {.count = 1, .seconds = 2.1, .first = 2, .busy = 4};
  EXPECT_EQ(report(recording).cause, Cause::start_up);
}

TEST(VerdictTest, FewerThreadsThanCoresAreTooFew) {
  Recording recording = busy();
  recording.facts.threads = 1;
  recording.work = 10;
  recording.ops[0].seconds = 9.5;
  recording.waits.busy = 8;
  const Report found = report(recording);
  EXPECT_EQ(found.cause, Cause::few_threads);
  EXPECT_THAT(found.verdict, HasSubstr("the only thread is busy"));
  const auto threads = std::ranges::find(found.what_if, "threads=2", &WhatIf::change);
  ASSERT_NE(threads, found.what_if.end());
  EXPECT_NEAR(threads->gain, 0.5, 0.01);
  EXPECT_EQ(found.advice, "2 threads instead of 1 would save about 50 %.");
}

TEST(VerdictTest, ReadsThatTakeMostOfTheTimeAreTheCause) {
  Recording recording = busy();
  recording.ops[0].read = 15;
  recording.reads = {.count = 6400, .bytes = 640'000'000, .seconds = 15};
  EXPECT_EQ(report(recording).cause, Cause::reading);
  EXPECT_THAT(report(recording).verdict, HasSubstr("79 % of the work is reading files"));
}

TEST(VerdictTest, RetriesAreNamedWithTheFirstReason) {
  Recording recording = busy();
  recording.ops[0].retry = 12;
  recording.reads.retried = 300;
  recording.reads.retries = {"decode: EIO"};
  EXPECT_EQ(report(recording).cause, Cause::retries);
  EXPECT_THAT(report(recording).advice, HasSubstr("EIO"));
}

TEST(VerdictTest, FunctionsThatShareTheInterpretersLockAreTheCause) {
  Recording recording = busy();
  recording.ops[0].lock = 9;
  recording.ops[0].cpu = 0.5;
  const Report found = report(recording);
  EXPECT_EQ(found.cause, Cause::interpreter_lock);
  EXPECT_THAT(found.verdict, HasSubstr("Python's lock"));
  EXPECT_THAT(found.advice, HasSubstr("workers=2"));
}

TEST(VerdictTest, AFunctionThatSleepsIsTheCause) {
  Recording recording = busy();
  recording.ops[0].cpu = 0.01;
  EXPECT_EQ(report(recording).cause, Cause::function_waits);
}

TEST(VerdictTest, WorkerProcessesThatAreBusyAreTheCause) {
  Recording recording = busy();
  recording.ops[0].process = 18;
  recording.ops[0].cpu = 0.05;
  EXPECT_EQ(report(recording).cause, Cause::worker_processes);
}

TEST(VerdictTest, AStreamThatOneThreadPullsIsTheCause) {
  Recording recording = busy();
  recording.facts.stream = true;
  recording.pulled = 9;
  recording.work = 9.5;
  recording.ops[0].seconds = 9;
  recording.waits.busy = 8;
  recording.waits.pulling = 7.9;
  recording.waits.one_busy = 7.9;
  EXPECT_EQ(report(recording).cause, Cause::in_order);
}

TEST(VerdictTest, ABudgetThatStopsThreadsIsTheCause) {
  Recording recording = busy();
  recording.waits.busy = 6;
  recording.waits.at_bytes = 6;
  recording.waits.at_limit = 6;
  recording.facts.bytes_max = 1'000'000;
  recording.step_bytes = 900'000;
  EXPECT_EQ(report(recording).cause, Cause::memory);
  EXPECT_THAT(report(recording).verdict, HasSubstr("may use 1.0 MB, and one has 900 KB"));
}

TEST(VerdictTest, AFewSlowSamplesAreTheCauseAndTheSlowestIsNamed) {
  Recording recording = busy();
  recording.waits.busy = 9;
  std::vector<std::uint64_t> counts(trace::kBuckets, 0);
  counts[trace::bucket_of(1'000'000)] = 6300;
  counts[trace::bucket_of(80'000'000)] = 100;
  recording.ops[0].durations = counts;
  recording.slowest = {
      {.op = "decode#1", .sample = "17 of source 0", .file = "a/big.png", .seconds = 0.09}};
  EXPECT_EQ(report(recording).cause, Cause::stragglers);
  EXPECT_THAT(report(recording).advice, HasSubstr("a/big.png"));
}

TEST(VerdictTest, OtherLoadersThatTakeTheThreadsAreTheCause) {
  Recording recording = busy();
  recording.others = 12;
  recording.work = 8;
  recording.ops[0].seconds = 7.5;
  recording.waits.busy = 6;
  EXPECT_EQ(report(recording).cause, Cause::other_loaders);
}

TEST(VerdictTest, OtherProgramsThatTakeTheCoresAreTheCause) {
  Recording recording = busy();
  recording.run_delay = 12;
  recording.ops[0].cpu = 0.4;
  EXPECT_EQ(report(recording).cause, Cause::other_programs);
}

TEST(VerdictTest, OwnThreadsThatCompeteForTheCoresAreNotOtherPrograms) {
  Recording recording = busy();
  recording.facts.threads = 8;
  recording.work = 80;
  recording.waits.busy = 64;
  recording.ops[0].seconds = 78;
  recording.ops[0].cpu = 0.25;
  recording.run_delay = 58;
  EXPECT_EQ(report(recording).cause, Cause::compute);
}

TEST(VerdictTest, TheFixedCostOfTinyBatchesIsTheCause) {
  Recording recording = busy();
  recording.steps = 100'000;
  recording.rows = 100'000;
  recording.ops[0].seconds = 2;
  EXPECT_EQ(report(recording).cause, Cause::small_steps);
}

TEST(VerdictTest, StepsThatAreTakenFasterThanTrainingCouldUseThemAreTooSmall) {
  Recording recording = busy();
  recording.steps = 1'000'000;
  recording.rows = 1'000'000;
  recording.waits = {.count = 1, .seconds = 0.1, .first = 0.1, .busy = 0.1};
  EXPECT_EQ(report(recording).cause, Cause::small_steps);
  EXPECT_THAT(report(recording).verdict, HasSubstr("A batch has only 1 sample"));
}

TEST(VerdictTest, AReplicaThatTheOthersWaitForIsTheCause) {
  Recording recording = busy();
  recording.waits = {.count = 1, .seconds = 0.1, .first = 0.1, .busy = 0.1};
  recording.replicas = {{"replica cpu:0", 100, 3200, 3, 6}, {"replica cpu:1", 100, 3200, 9, 0}};
  const Report found = report(recording);
  EXPECT_EQ(found.cause, Cause::slow_replica);
  EXPECT_THAT(found.verdict, HasSubstr("replica cpu:1 is slow"));
}

TEST(VerdictTest, ARandomOpBeforeACacheIsNamedFirst) {
  Recording recording = busy();
  recording.facts.ops = {{.title = "decode#1"},
                         {.title = "flip#2", .random = true},
                         {.title = "cache()", .cache = true, .repeats = "flip"}};
  const Report found = report(recording);
  EXPECT_EQ(found.cause, Cause::cache_after_random);
  EXPECT_THAT(found.verdict, HasSubstr("flip draws random numbers before cache()"));
  EXPECT_THAT(found.advice, HasSubstr("place=\"auto\""));
}

TEST(VerdictTest, ARandomOpOfAnotherBranchIsNotBeforeTheCache) {
  Recording recording = busy();
  recording.facts.ops = {{.title = "augment#1", .random = true},
                         {.title = "decode#2"},
                         {.title = "cache()", .cache = true}};
  EXPECT_EQ(report(recording).cause, Cause::compute);
}

TEST(VerdictTest, EveryCauseHasAName) {
  for (int cause = 0; cause <= static_cast<int>(Cause::cache_after_random); ++cause)
    EXPECT_STRNE(cause_name(static_cast<Cause>(cause)), "unknown");
}

TEST(WhatIfTest, ACacheBeforeTheFirstRandomOpSavesWhatIsBeforeIt) {
  Recording recording = busy();
  recording.facts.ops = {
      {.title = "decode#1"}, {.title = "flip#2", .random = true}, {.title = "normalize#3"}};
  recording.waits = {.count = 100, .seconds = 10, .busy = 20};
  recording.ops = {
      {.title = "decode#1", .rows = 6400, .bytes = 64'000'000, .seconds = 15, .cpu = 1.0},
      {.title = "flip#2", .rows = 6400, .seconds = 2.5, .cpu = 1.0},
      {.title = "normalize#3", .rows = 6400, .seconds = 2.5, .cpu = 1.0}};
  const Report found = report(recording);
  ASSERT_EQ(found.what_if.size(), 1U);
  EXPECT_EQ(found.what_if[0].change, "cache after decode");
  EXPECT_NEAR(found.what_if[0].gain, 0.75, 0.01);
  EXPECT_THAT(found.what_if[0].text, HasSubstr("take 64 MB"));
}

TEST(WhatIfTest, OfSeveralSourcesNoCacheIsEstimated) {
  Recording recording = busy();
  recording.waits = {.count = 100, .seconds = 10, .busy = 20};
  recording.ops.push_back({.title = "range#0", .rows = 6400, .seconds = 0.1, .cpu = 1.0});
  ASSERT_EQ(report(recording).what_if.size(), 1U) << "a cache after decode";
  recording.ops.push_back({.title = "from_text#2", .rows = 6400, .seconds = 0.1, .cpu = 1.0});
  EXPECT_TRUE(report(recording).what_if.empty());
}

TEST(WhatIfTest, ADatasetWithACacheNeedsNone) {
  Recording recording = busy();
  recording.facts.ops = {{.title = "decode#1"}, {.title = "cache#2", .cache = true}};
  EXPECT_TRUE(report(recording).what_if.empty());
}

}  // namespace
}  // namespace penstock
