#include <gmock/gmock.h>

#include "order/block_order.h"
#include "order/permutation.h"
#include "penstock/plan.h"
#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(ShuffleTest, EveryTurnHasTheOrderOfItsKey) {
  constexpr std::uint64_t kSize = 12;
  const StagePtr stage = stage_of(tagged(0, kSize).shuffle({.seed = 5}));
  for (const Turn turn : {Turn{0, 0}, Turn{1, 0}, Turn{0, 1}, Turn{3, 2}}) {
    const Permutation order(kSize, {5, turn.pass, turn.round});
    Numbers expected = up_to(kSize);
    for (std::uint64_t& number : expected) number = order(number);
    EXPECT_EQ(ask(*stage, turn, up_to(kSize)).fields.at(0), expected);
  }
}

TEST(ShuffleTest, WithoutReshuffleEveryTurnHasTheFirstOrder) {
  const Dataset once = tagged(0, 12).shuffle({.seed = 5, .reshuffle_each_epoch = false});
  const Dataset anew = tagged(0, 12).shuffle({.seed = 5});
  for (const Turn turn : {Turn{0, 0}, Turn{1, 0}, Turn{0, 7}})
    EXPECT_EQ(first_field(once, turn, up_to(12)), first_field(anew, {}, up_to(12)));
}

TEST(ShuffleTest, AWindowPermutesOnlyInsideItself) {
  const Dataset windows = tagged(0, 11).shuffle({.seed = 3, .window = 4});
  const Numbers order = first_field(windows, {}, up_to(11));
  for (const auto& [first, end] : {std::pair{0U, 4U}, std::pair{4U, 8U}, std::pair{8U, 11U}}) {
    Numbers window(order.begin() + first, order.begin() + end);
    std::ranges::sort(window);
    for (std::uint64_t i = 0; i < window.size(); ++i) EXPECT_EQ(window[i], first + i);
  }
}

TEST(ShuffleTest, BlocksOfNeighborsAreMixedByWindows) {
  constexpr std::uint64_t kSize = 13;
  const StagePtr stage = stage_of(tagged(0, kSize).shuffle({.seed = 5, .window = 3, .blocks = 2}));
  for (const Turn turn : {Turn{0, 0}, Turn{1, 0}, Turn{0, 1}, Turn{3, 2}}) {
    const BlockOrder order({kSize, 2, 3}, {5, turn.pass, turn.round});
    Numbers expected = up_to(kSize);
    order.apply(expected);
    EXPECT_EQ(ask(*stage, turn, up_to(kSize)).fields.at(0), expected);
  }
  const Dataset once =
      tagged(0, kSize).shuffle({.seed = 5, .reshuffle_each_epoch = false, .blocks = 2});
  EXPECT_EQ(first_field(once, Turn{3, 2}, up_to(kSize)), first_field(once, {}, up_to(kSize)));
}

TEST(ShuffleTest, ThePlanSaysHowRandomAShuffleOfBlocksIs) {
  const Dataset data = Dataset::range(1'000'000).shuffle({.seed = 7, .blocks = 1024});
  EXPECT_THAT(Plan(data.batch(8)).explain(),
              HasSubstr("note: shuffle(seed=7, blocks=1024): 977 blocks of 1,024 samples in random "
                        "order, mixed 16 at a time; a sample's neighbors in a batch come from 16 "
                        "blocks\n"));
}

TEST(ShuffleTest, OnlySamplesOfKnownNumberHaveBlocks) {
  const ShuffleOptions blocks{.blocks = 4};
  EXPECT_THAT(refusal([&] { return tagged(0, 9).batch(2).shuffle(blocks); }),
              HasSubstr("before batch"));
  EXPECT_THAT(refusal([&] { return tagged(0, 9).repeat().shuffle(blocks); }),
              HasSubstr("shuffle before repeat"));
  EXPECT_THAT(
      refusal([&] {
        return Dataset::range(9).filter([](std::int64_t x) { return x > 3; }).shuffle(blocks);
      }),
      HasSubstr("shuffle({.window = n})"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).shuffle({.blocks = 0}); }),
              HasSubstr("blocks must be positive"));
}

TEST(ShuffleTest, StreamsAndEndlessDataNeedAWindow) {
  EXPECT_THAT(refusal([] { return tagged(0, 9).repeat().shuffle(); }),
              HasSubstr("shuffle before repeat"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).shuffle({.window = 0}); }),
              HasSubstr("window must be positive"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).batch(2).shuffle({.window = 2}); }),
              HasSubstr("before batch"));
}

}  // namespace
}  // namespace penstock
