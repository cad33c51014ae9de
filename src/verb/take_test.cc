#include <gmock/gmock.h>

#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(TakeTest, PositionsStayAsTheyAre) {
  EXPECT_EQ(first_field(tagged(0, 9).take(4), {}, {2, 0, 1}), (Numbers{2, 0, 1}));
}

TEST(TakeTest, TakeStopsAtTheEnd) {
  EXPECT_EQ(tagged(0, 9).take(4).cardinality(), Cardinality::of(4));
  EXPECT_EQ(tagged(0, 9).take(90).cardinality(), Cardinality::of(9));
  EXPECT_EQ(tagged(0, 9).take(-1).cardinality(), Cardinality::of(9));
  EXPECT_EQ(tagged(0, 9).repeat().take(40).cardinality(), Cardinality::of(40));
}

TEST(TakeTest, ANegativeCountOtherThanAllIsRefused) {
  EXPECT_THAT(refusal([] { return tagged(0, 9).take(-2); }), HasSubstr("take(-1) means all"));
}

}  // namespace
}  // namespace penstock
