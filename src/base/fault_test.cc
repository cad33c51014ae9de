#include "base/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/thread.h"

namespace penstock::fault {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

class FaultTest : public testing::Test {
 protected:
  FaultTest() { disarm_all(); }
  ~FaultTest() override { disarm_all(); }
};

TEST_F(FaultTest, AnArmedPointFiresOnceAtItsNthHitFromThen) {
  EXPECT_FALSE(fires("a"));
  EXPECT_FALSE(fires("a"));
  arm("a", 2);
  EXPECT_FALSE(fires("a"));
  EXPECT_TRUE(fires("a"));
  EXPECT_FALSE(fires("a"));
}

TEST_F(FaultTest, OnlyTheNamedFeatureIsSwitchedOff) {
  EXPECT_FALSE(is_off("a"));
  switch_off("a");
  EXPECT_TRUE(is_off("a"));
  EXPECT_TRUE(is_off("a"));
  EXPECT_FALSE(is_off("b"));
  switch_off("");
  EXPECT_FALSE(is_off("a"));
}

TEST_F(FaultTest, ZeroDisarmsAPoint) {
  arm("a", 1);
  arm("a", 0);
  EXPECT_FALSE(fires("a"));
}

TEST_F(FaultTest, PointsAreArmedFromAList) {
  EXPECT_TRUE(arm_listed("a:1,b.c:2"));
  EXPECT_TRUE(fires("a"));
  EXPECT_FALSE(fires("b.c"));
  EXPECT_TRUE(fires("b.c"));
  EXPECT_TRUE(arm_listed(""));
  for (const char* const wrong : {"a", "a:", "a:x", "a:1x", "a:-1"})
    EXPECT_FALSE(arm_listed(wrong)) << wrong;
}

TEST_F(FaultTest, HitsAreCountedForEveryPointSinceTheLastDisarm) {
  arm("armed", 5);
  fires("armed");
  fires("other");
  fires("other");
  EXPECT_THAT(hits(), UnorderedElementsAre(Pair("armed", 1), Pair("other", 2)));
  disarm_all();
  EXPECT_TRUE(hits().empty());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(fires("armed"));
}

TEST_F(FaultTest, APointFiresInExactlyOneThread) {
  constexpr int kThreads = 4;
  constexpr int kHits = 1000;
  std::atomic<int> fired = 0;
  arm("a", kThreads * kHits / 2);
  {
    std::vector<Thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back("hitter", [&] {
        for (int hit = 0; hit < kHits; ++hit) fired += fires("a") ? 1 : 0;
      });
  }
  EXPECT_EQ(fired, 1);
  EXPECT_THAT(hits(), UnorderedElementsAre(Pair("a", kThreads * kHits)));
}

TEST_F(FaultTest, TheMacroIsActiveInTestBuildsOnly) {
  arm("a", 1);
#ifdef PENSTOCK_FAULTS
  EXPECT_TRUE(PENSTOCK_FAULT("a"));
#else
  EXPECT_FALSE(PENSTOCK_FAULT("a"));
#endif
}

}  // namespace
}  // namespace penstock::fault
