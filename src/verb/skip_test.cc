#include <gmock/gmock.h>

#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(SkipTest, PositionsMoveByTheCount) {
  EXPECT_EQ(first_field(tagged(0, 9).skip(0), {}, {2, 0, 1}), (Numbers{2, 0, 1}));
  EXPECT_EQ(first_field(tagged(0, 9).skip(4), {}, {2, 0, 1}), (Numbers{6, 4, 5}));
}

TEST(SkipTest, SkippingEverythingLeavesNothing) {
  EXPECT_EQ(tagged(0, 9).skip(9).cardinality(), Cardinality::of(0));
  EXPECT_EQ(tagged(0, 9).skip(90).cardinality(), Cardinality::of(0));
  EXPECT_EQ(tagged(0, 9).skip(-1).cardinality(), Cardinality::of(0));
  EXPECT_TRUE(tagged(0, 9).repeat().skip(4).cardinality().is_endless());
}

TEST(SkipTest, ANegativeCountOtherThanAllIsRefused) {
  EXPECT_THAT(refusal([] { return tagged(0, 9).skip(-2); }), HasSubstr("skip(-1) means all"));
}

}  // namespace
}  // namespace penstock
