// Save and restore at every position of many small pipelines: a resumed run equals one without a
// stop.
#include <gtest/gtest.h>

#include <cstdlib>

#include "penstock/report_sink.h"
#include "tests/pipelines.h"
#include "tests/stream_pipelines.h"

namespace penstock::testing {
namespace {

constexpr std::uint64_t kEpochs = 2;

/// Some pipelines cache random numbers on purpose; the warning about it is tested elsewhere.
class EveryPositionTest : public ::testing::Test {
 protected:
  EveryPositionTest() : before_(set_report_sink([](const std::string&) {})) {}
  ~EveryPositionTest() override { set_report_sink(before_); }

 private:
  ReportSink before_;
};

struct Walk {
  std::vector<std::string> steps;
  std::vector<State> before;  // the state before each step, and after the last
};

Walk walk(Loader& loader) {
  Walk walk;
  while (loader.epoch() < kEpochs) {
    walk.before.push_back(loader.state());
    if (auto step = loader.next_step()) {
      walk.steps.push_back(seen(*step));
    } else {
      walk.before.pop_back();
    }
  }
  walk.before.push_back(loader.state());
  return walk;
}

LoaderOptions with_threads(unsigned threads) {
  LoaderOptions options;
  options.shares = {2, 0, 2};
  options.threads = threads;
  return options;
}

/// Indexed data and streams.
std::vector<Pipeline> all_pipelines() {
  std::vector<Pipeline> all = pipelines();
  for (Pipeline& stream : stream_pipelines()) all.push_back(std::move(stream));
  return all;
}

TEST_F(EveryPositionTest, ThereAreFiftyPipelinesAndThirtyStreams) {
  EXPECT_GE(pipelines().size(), 50U);
  EXPECT_GE(stream_pipelines().size(), 30U);
  for (const Pipeline& stream : stream_pipelines()) EXPECT_TRUE(stream.dataset.streamed());
}

TEST_F(EveryPositionTest, RestoreAtEveryPositionDeliversTheRest) {
  const unsigned counts = std::getenv("PENSTOCK_LONG") != nullptr ? 4 : 2;
  for (const Pipeline& pipeline : all_pipelines()) {
    SCOPED_TRACE(pipeline.dataset.describe());
    Loader whole(pipeline.dataset, with_threads(2));
    const Walk expected = walk(whole);
    for (std::size_t at = 0; at < expected.before.size(); ++at) {
      for (unsigned threads = 0; threads < counts; ++threads) {
        Loader resumed(pipeline.dataset, with_threads(threads));
        resumed.restore(State::parse(expected.before[at].to_json()));
        const Walk rest = walk(resumed);
        ASSERT_EQ(rest.steps, std::vector(expected.steps.begin() + static_cast<std::ptrdiff_t>(at),
                                          expected.steps.end()))
            << "restored before step " << at << " with " << threads << " threads";
      }
    }
  }
}

TEST_F(EveryPositionTest, RestoringTwiceEqualsRestoringOnce) {
  for (const Pipeline& pipeline : all_pipelines()) {
    SCOPED_TRACE(pipeline.dataset.describe());
    Loader whole(pipeline.dataset, with_threads(1));
    const Walk expected = walk(whole);
    const std::size_t middle = expected.before.size() / 2;
    Loader resumed(pipeline.dataset, with_threads(1));
    resumed.restore(expected.before.front());
    resumed.next_step();
    resumed.restore(expected.before[middle]);
    resumed.restore(expected.before[middle]);
    EXPECT_EQ(resumed.state(), expected.before[middle]);
    const Walk rest = walk(resumed);
    EXPECT_EQ(rest.steps.size(), expected.steps.size() - middle);
  }
}

TEST_F(EveryPositionTest, StatesAreUnderOneKilobyte) {
  for (const Pipeline& pipeline : pipelines()) {
    Loader loader(pipeline.dataset, with_threads(0));
    for (const State& state : walk(loader).before) EXPECT_LE(state.to_json().size(), 1024U);
  }
}

TEST_F(EveryPositionTest, StatesOfStreamsAreUnder64Kilobytes) {
  for (const Pipeline& pipeline : stream_pipelines()) {
    Loader loader(pipeline.dataset, with_threads(0));
    for (const State& state : walk(loader).before) EXPECT_LE(state.to_json().size(), 64U * 1024);
  }
}

TEST_F(EveryPositionTest, ReplayAndRunBlockReturnTheBytesOfTheStep) {
  for (const Pipeline& pipeline : all_pipelines()) {
    SCOPED_TRACE(pipeline.dataset.describe());
    Loader loader(pipeline.dataset, {.threads = 2});
    Iterator again = Loader(pipeline.dataset, {.threads = 0}).iterate();
    for (std::uint64_t step = 0; auto batches = loader.next_step(); ++step) {
      const std::string expected = seen(*batches);
      EXPECT_EQ(seen(again.replay(step)), expected);
      const BlockId block{0, step, 0, batches->front().rows()};
      EXPECT_EQ(seen({run_block(loader.plan(), block)}), expected);
    }
  }
}

}  // namespace
}  // namespace penstock::testing
