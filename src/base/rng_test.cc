#include "penstock/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "base/random_key.h"

namespace penstock {
namespace {

static_assert(std::uniform_random_bit_generator<Rng>);

using Words = std::array<std::uint32_t, 4>;

// The known answers of Random123, kat_vectors, philox4x32 10.
TEST(RngTest, PhiloxGivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RngTest, DrawsAreTheWordsOfConsecutiveBlocks) {
  const std::uint64_t key = 0x299f31d0'a4093822;
  const std::uint64_t number = 0x85a308d3'243f6a88;
  Rng rng(key, number);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const Words words = philox({0x243f6a88, 0x85a308d3, block, 0}, {0xa4093822, 0x299f31d0});
    EXPECT_EQ(rng(), words[0] | std::uint64_t{words[1]} << 32);
    EXPECT_EQ(rng(), words[2] | std::uint64_t{words[3]} << 32);
  }
}

TEST(RngTest, UniformIsAMultipleOfTwoToTheMinus53BelowOne) {
  Rng rng(1, 2);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = rng.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ASSERT_EQ(std::ldexp(value, 53), std::floor(std::ldexp(value, 53)));
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.01);
}

TEST(RngTest, IntegerReachesEveryNumberBelowCountAndNoOther) {
  Rng rng(1, 2);
  for (const std::uint64_t count : {1, 2, 3, 7}) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 300; ++i) seen.insert(rng.integer(count));
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
  for (int i = 0; i < 100; ++i) EXPECT_LT(rng.integer(UINT64_MAX), UINT64_MAX);
}

TEST(RngTest, IntegerFavorsNoNumber) {
  // Reducing 64 bits modulo three quarters of their range would give a value below a third of it
  // half the time.
  constexpr std::uint64_t kThird = std::uint64_t{1} << 62;
  Rng rng(1, 2);
  int below = 0;
  for (int i = 0; i < 9000; ++i) below += rng.integer(3 * kThird) < kThird ? 1 : 0;
  EXPECT_NEAR(below, 3000, 200);
}

TEST(RngTest, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(1, 2);
  constexpr int kDraws = 50'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.02);
}

TEST(RandomKeyTest, EveryPartOfTheKeySelectsOtherNumbers) {
  const auto first = [](const RandomKey& key, std::uint64_t occurrence, SampleKey sample) {
    return key.rng(occurrence, sample)();
  };
  const std::set<std::uint64_t> draws{
      first({0, 0, 0}, 0, {0, 0}),         first({1, 0, 0}, 0, {0, 0}), first({0, 1, 0}, 0, {0, 0}),
      first({0, 0, 1}, 0, {0, 0}),         first({0, 0, 0}, 1, {0, 0}), first({0, 0, 0}, 0, {1, 0}),
      first({0, 0, 0}, 0, {0, 1}),         first({0, 1, 1}, 0, {0, 0}), first({1, 1, 0}, 0, {0, 0}),
      first({0, 0, 0}, 0, {0, 1ULL << 32})};
  EXPECT_EQ(draws.size(), 10U);
}

TEST(RandomKeyTest, KeepsItsMeaningAcrossReleases) {
  Rng rng = RandomKey{.seed = 7, .op = 1, .pass = 2}.rng(3, {4, 5});
  EXPECT_EQ(rng(), 1901743893026884426U);
  EXPECT_EQ(rng(), 12150760979038782683U);
}

}  // namespace
}  // namespace penstock
