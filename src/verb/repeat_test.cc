#include <set>

#include "order/permutation.h"
#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

TEST(RepeatTest, EachRoundIsComputedSeparatelyWithItsOwnNumber) {
  std::vector<Asked> asked;
  const StagePtr stage = stage_of(tagged(0, 4, &asked).repeat(3));
  const Got got = ask(*stage, {.pass = 2, .round = 5}, {2, 3, 4, 5, 11, 0});
  EXPECT_EQ(got.fields[0], (Numbers{2, 3, 0, 1, 3, 0}));
  EXPECT_EQ(got.occurrences, (Numbers{15, 15, 16, 16, 17, 15}));
  EXPECT_EQ(asked,
            (std::vector<Asked>{{2, 15, {2, 3}}, {2, 16, {0, 1}}, {2, 17, {3}}, {2, 15, {0}}}));
}

TEST(RepeatTest, RoundsOfNestedRepeatsAllDiffer) {
  std::vector<Asked> asked;
  ask(tagged(0, 2, &asked).repeat(3).repeat(4), {}, up_to(24));
  for (std::uint64_t i = 0; i < asked.size(); ++i) EXPECT_EQ(asked[i], (Asked{0, i, {0, 1}}));
  EXPECT_EQ(asked.size(), 12U);
}

TEST(RepeatTest, RoundsBelowManyRepeatsAllDiffer) {
  // Three nested endless repeats: 2^96 rounds.
  std::set<std::uint64_t> rounds;
  for (std::uint64_t a = 0; a < 4; ++a)
    for (std::uint64_t b = 0; b < 4; ++b)
      for (std::uint64_t c = 0; c < 4; ++c)
        rounds.insert(nested_round(nested_round(a, kEndlessRounds, b), kEndlessRounds, c));
  EXPECT_EQ(rounds.size(), 64U);
  EXPECT_EQ(nested_round(3, 5, 2), 17U) << "counted exactly if they fit";
  EXPECT_EQ(nested_round(kEndlessRounds - 1, kEndlessRounds, kEndlessRounds - 1), UINT64_MAX);
}

TEST(RepeatTest, RunsInOrderAreWrittenInPlace) {
  std::vector<Asked> asked;
  ask(tagged(0, 12, &asked).repeat(20), {}, up_to(240));
  EXPECT_EQ(asked.size(), 20U);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(asked[i], (Asked{0, i, up_to(12)}));
}

// The stage below is called once per round or side, not once per row; a call may be expensive.
TEST(RepeatTest, ShuffledRowsAreComputedOnceForEachRound) {
  std::vector<Asked> asked;
  ask(tagged(0, 12, &asked).repeat(20).shuffle(), {}, up_to(240));
  EXPECT_EQ(asked.size(), 20U);
  Numbers rounds;
  for (const Asked& each : asked) rounds.push_back(each.round);
  std::ranges::sort(rounds);
  EXPECT_EQ(rounds, up_to(20));
}

TEST(RepeatTest, TheFirstFailureOfShuffledRowsIsReported) {
  Scratch scratch;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const StagePtr mixed = stage_of(tagged(0, 20).repeat(5).shuffle({.seed = seed}));
    const ScratchBlock block(mixed->spec(), 100, scratch);
    const auto done = mixed->produce({{}, up_to(100)}, block.view(), scratch);
    std::size_t first = 0;
    while (Permutation(100, {seed, 0, 0})(first) % 20 != 13) ++first;
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.failure().row, first);
    for (std::uint64_t row = 0; row < first; ++row)
      EXPECT_EQ(read_row(block.view(), row).tensor().item<std::uint64_t>(),
                Permutation(100, {seed, 0, 0})(row) % 20);
  }
}

}  // namespace
}  // namespace penstock
