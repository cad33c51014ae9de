#include "feed/epoch_loop.h"

#include <gtest/gtest.h>

#include "base/report.h"

namespace penstock {
namespace {

class EpochLoopTest : public testing::Test {
 public:
  EpochLoopTest() : before_(set_report_sink([this](const std::string&) { ++warnings; })) {}
  ~EpochLoopTest() override { set_report_sink(before_); }

 protected:
  /// A loop of `batches` batches, to the end of the epoch or left before it. Returns whether it
  /// had to begin the next epoch.
  bool run(int batches, bool to_end) {
    const bool next_epoch = loop.begin();
    loop.enter();
    for (int i = 0; i < batches; ++i) loop.took_batch();
    if (to_end) loop.end_epoch();
    return next_epoch;
  }

  int warnings = 0;
  OneBatchWatch watch;
  EpochLoop loop{watch};

 private:
  ReportSink before_;
};

TEST_F(EpochLoopTest, OnlyALoopAfterOneThatWasLeftBeginsTheNextEpoch) {
  EXPECT_FALSE(run(3, true)) << "the first loop";
  EXPECT_FALSE(run(2, false)) << "after the end of an epoch";
  EXPECT_TRUE(run(3, true)) << "after a loop that was left";
  EXPECT_FALSE(run(3, true)) << "after the end of an epoch";
}

TEST_F(EpochLoopTest, ALoopThatRequestedNothingLeavesTheEpochToTheNextOne) {
  EXPECT_FALSE(loop.begin());
  EXPECT_FALSE(loop.inside());
  EXPECT_FALSE(loop.begin());
}

TEST_F(EpochLoopTest, ALoopWhoseFirstRequestFailedIsInsideTheEpoch) {
  EXPECT_FALSE(loop.begin());
  loop.enter();  // and no batch comes
  EXPECT_TRUE(loop.inside());
  EXPECT_TRUE(loop.begin());
}

TEST_F(EpochLoopTest, ALoopBeginsAtAPositionThatWasSet) {
  EXPECT_FALSE(run(2, false));
  loop.move();
  EXPECT_FALSE(run(2, false));
}

TEST_F(EpochLoopTest, BatchesAreCountedFromTheBeginningOfALoop) {
  loop.took_batch();  // without a loop
  EXPECT_EQ(loop.batches(), 1U);
  run(3, false);
  EXPECT_EQ(loop.batches(), 3U);
  EXPECT_TRUE(loop.begin());
  EXPECT_EQ(loop.batches(), 0U);
}

TEST_F(EpochLoopTest, ThreeLoopsInARowThatWereLeftAfterOneBatchAreWarnedAboutOnce) {
  for (int i = 0; i < 3; ++i) run(1, false);
  EXPECT_EQ(warnings, 0) << "the third one may still take more";
  for (int i = 0; i < 3; ++i) run(1, false);
  EXPECT_EQ(warnings, 1);
}

TEST_F(EpochLoopTest, AWholeEpochBetweenLoopsOfOneBatchIsNoReasonToWarn) {
  for (int i = 0; i < 9; ++i) run(1, i % 3 == 2);
  EXPECT_EQ(warnings, 0);
}

TEST_F(EpochLoopTest, EpochsOfOneBatchAreNoReasonToWarn) {
  for (int i = 0; i < 9; ++i) run(1, true);
  EXPECT_EQ(warnings, 0);
}

TEST_F(EpochLoopTest, ALoopThatWasLeftAfterTwoBatchesStartsTheCountAgain) {
  for (int i = 0; i < 9; ++i) run(i % 3 == 2 ? 2 : 1, false);
  EXPECT_EQ(warnings, 0);
}

}  // namespace
}  // namespace penstock
