#include <gmock/gmock.h>

#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(UnbatchTest, RowsAreThoseOfTheStepsOneAfterTheOther) {
  const Dataset left = tagged(100, 5).batch(2, {.tail = Tail::drop}).repeat(2).skip(1);
  const Dataset rows = left.concatenate(tagged(200, 3).batch(2)).unbatch();
  ASSERT_EQ(rows.cardinality(), Cardinality::of(9));
  const StagePtr stage = stage_of(rows);
  const Got got = ask(*stage, {.pass = 0, .round = 1}, up_to(9));
  EXPECT_EQ(got.fields[0], (Numbers{102, 103, 100, 101, 102, 103, 200, 201, 202}));
  EXPECT_EQ(got.occurrences, (Numbers{2, 2, 3, 3, 3, 3, 1, 1, 1}));
  EXPECT_EQ(stage->ids().key(202), (SampleKey{200, 2}));
}

TEST(UnbatchTest, RowsWithoutNumbersAreRejected) {
  EXPECT_THAT(refusal([] { return tagged(0, 9).batch(2).shuffle().unbatch(); }),
              HasSubstr("unbatch: not after shuffle"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).unbatch(); }),
              HasSubstr("has no first dimension of rows"));
}

}  // namespace
}  // namespace penstock
