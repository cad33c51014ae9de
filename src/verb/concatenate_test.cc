#include <gmock/gmock.h>

#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(ConcatenateTest, EachSideComputesRunsOfItsOwnPositions) {
  std::vector<Asked> left;
  std::vector<Asked> right;
  const Dataset both = tagged(100, 3, &left).concatenate(tagged(200, 9, &right));
  const Got got = ask(both, {.pass = 1, .round = 2}, {1, 2, 3, 4, 0});
  EXPECT_EQ(got.fields[0], (Numbers{101, 102, 200, 201, 100}));
  EXPECT_EQ(got.ids, got.fields[0]);
  EXPECT_EQ(left, (std::vector<Asked>{{1, 2, {1, 2}}, {1, 2, {0}}}));
  EXPECT_EQ(right, (std::vector<Asked>{{1, 2, {0, 1}}}));
}

TEST(ConcatenateTest, IdsAreFoundAmongTheSourcesOfBothSides) {
  const StagePtr stage = stage_of(tagged(100, 3).concatenate(tagged(200, 9)));
  EXPECT_EQ(stage->ids().key(101), (SampleKey{100, 1}));
  EXPECT_EQ(stage->ids().key(201), (SampleKey{200, 1}));
}

TEST(ConcatenateTest, AFailureEndsTheBlock) {
  Scratch scratch;
  const StagePtr stage = stage_of(tagged(100, 20).concatenate(tagged(200, 20)));
  const ScratchBlock block(stage->spec(), 3, scratch);
  const Numbers positions = {12, 13, 20};
  const auto done = stage->produce({{}, positions}, block.view(), scratch);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.failure().message, "13 is broken");
}

TEST(ConcatenateTest, AFailureNamesTheRowOfTheBlockNotOfItsRun) {
  Scratch scratch;
  const StagePtr stage = stage_of(tagged(100, 20).concatenate(tagged(200, 20)));
  const ScratchBlock block(stage->spec(), 4, scratch);
  const Numbers positions = {11, 12, 20, 33};
  const auto done = stage->produce({{}, positions}, block.view(), scratch);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.failure().row, 3U);
}

TEST(ConcatenateTest, EachPositionOfManyPartsIsFoundInItsPart) {
  Dataset joined = tagged(0, 0);
  Numbers ends{0};
  for (std::uint64_t part = 1; part < 40; ++part) {
    joined = joined.concatenate(tagged(1000 * part, part % 3));  // every third one is empty
    ends.push_back(ends.back() + part % 3);
  }
  EXPECT_EQ(joined.node()->inputs.size(), 40U) << "a chain is one node";
  for (std::uint64_t position = 0; position < ends.back(); ++position) {
    std::uint64_t part = 0;
    while (ends[part] <= position) ++part;
    EXPECT_EQ(first_field(joined, {}, {position}).front(), 1000 * part + position - ends[part - 1])
        << position;
  }
}

TEST(ConcatenateTest, ShuffledRowsAreComputedOnceForEachSide) {
  std::vector<Asked> left;
  std::vector<Asked> right;
  ask(tagged(0, 10, &left).concatenate(tagged(100, 10, &right)).shuffle(), {}, up_to(20));
  EXPECT_EQ(left.size() + right.size(), 2U);
}

// The rows do not depend on how a block is split.
TEST(ConcatenateTest, ABlockEqualsItsRowsComputedOneByOne) {
  const Dataset both = tagged(100, 5).shuffle({.seed = 1}).concatenate(tagged(200, 9).shard(2, 1));
  const StagePtr stage = stage_of(both.repeat(3).shuffle({.seed = 2}));
  const Got whole = ask(*stage, {.pass = 1, .round = 1}, up_to(27));
  for (std::uint64_t position = 0; position < 27; ++position) {
    const Got one = ask(*stage, {.pass = 1, .round = 1}, {position});
    EXPECT_EQ(one.fields[0][0], whole.fields[0][position]);
    EXPECT_EQ(one.ids[0], whole.ids[position]);
    EXPECT_EQ(one.occurrences[0], whole.occurrences[position]);
  }
}

TEST(ConcatenateTest, SidesOfDifferentKindsAreRejected) {
  EXPECT_THAT(refusal([] { return tagged(0, 4).concatenate(tagged(0, 4).batch(2)); }),
              HasSubstr("one side is batched"));
  EXPECT_THAT(refusal([] { return tagged(0, 4).concatenate(tagged(0, 4).enumerate()); }),
              HasSubstr("on one side"));
}

}  // namespace
}  // namespace penstock
