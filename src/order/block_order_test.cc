#include "order/block_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "penstock/error.h"

namespace penstock {
namespace {

using Order = std::vector<std::uint64_t>;
using Sizes = BlockOrder::Sizes;

Order order_of(const Sizes& sizes, Permutation::Key key = {.seed = 7}) {
  Order order(sizes.samples);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  BlockOrder(sizes, key).apply(order);
  return order;
}

const std::vector<Sizes>& many_sizes() {
  static const std::vector<Sizes> kAll = [] {
    std::vector<Sizes> all;
    for (const std::uint64_t samples : {0, 1, 2, 3, 5, 7, 12, 64, 100, 257, 1000, 1024})
      for (const std::uint64_t block : {1, 2, 3, 7, 16, 100, 1024, 5000})
        for (const std::uint64_t window : {0, 1, 2, 5, 16, 48, 100, 1000, 1'000'000})
          all.push_back({samples, block, window});
    return all;
  }();
  return kAll;
}

TEST(BlockOrderTest, EverySampleComesExactlyOnce) {
  for (const Sizes& sizes : many_sizes()) {
    Order order = order_of(sizes);
    std::ranges::sort(order);
    for (std::uint64_t i = 0; i < sizes.samples; ++i)
      ASSERT_EQ(order[i], i) << sizes.samples << " by " << sizes.block << " in " << sizes.window;
  }
}

TEST(BlockOrderTest, AnyPositionsInAnyOrderEqualSingleCalls) {
  for (const Sizes& sizes : many_sizes()) {
    if (sizes.samples == 0 || sizes.samples > 300) continue;
    const Order order = order_of(sizes);
    const BlockOrder single(sizes, {.seed = 7});
    Order positions;
    for (std::uint64_t i = 0; i < sizes.samples; ++i) {
      ASSERT_EQ(single(i), order[i]);
      positions.push_back(i * 37 % sizes.samples);
      positions.push_back(i / 2);
    }
    Order expected;
    for (const std::uint64_t position : positions) expected.push_back(order[position]);
    single.apply(positions);
    ASSERT_EQ(positions, expected);
  }
}

// The promise about locality: only the blocks of a window are open while it is delivered.
TEST(BlockOrderTest, TheSamplesOfAWindowAreExactlyThoseOfItsBlocks) {
  for (const Sizes& sizes : many_sizes()) {
    const Order order = order_of(sizes);
    std::set<std::uint64_t> finished;
    for (std::uint64_t at = 0; at < order.size();) {
      std::set<std::uint64_t> open;
      std::uint64_t samples = 0;
      // A window is complete when it has delivered all samples of the blocks it has begun, and has
      // its number of blocks.
      do {
        ASSERT_LT(at, order.size());
        const std::uint64_t block = order[at++] / sizes.block;
        ASSERT_FALSE(finished.contains(block));
        if (open.insert(block).second)
          samples += std::min(sizes.block, sizes.samples - block * sizes.block);
        ASSERT_LE(open.size(), sizes.window_blocks());
        --samples;
      } while (samples > 0 ||
               open.size() < std::min(sizes.window_blocks(), sizes.blocks() - finished.size()));
      finished.merge(open);
    }
    EXPECT_EQ(finished.size(), sizes.blocks());
  }
}

TEST(BlockOrderTest, WindowsAreRoundedUpToBlocksAndAreSixteenOfThemByDefault) {
  EXPECT_EQ(order_of({1000, 10, 25}), order_of({1000, 10, 30}));
  EXPECT_NE(order_of({1000, 10, 25}), order_of({1000, 10, 20}));
  EXPECT_EQ(order_of({1000, 10, 0}), order_of({1000, 10, 160}));
}

TEST(BlockOrderTest, AWindowOfAllSamplesMixesThemAll) {
  const Order order = order_of({1000, 10, 1000});
  EXPECT_EQ(order, order_of({1000, 10, UINT64_MAX}));
  // Each of the first ten samples is far from the others, wherever its block went.
  std::set<std::uint64_t> blocks;
  for (std::size_t i = 0; i < 100; ++i) blocks.insert(order[i] / 10);
  EXPECT_GT(blocks.size(), 40U);
}

TEST(BlockOrderTest, SeedPassAndRoundChangeBlocksAndTheirSamples) {
  std::set<Order> orders;
  std::set<Order> of_blocks;
  for (std::uint64_t i = 1; i < 6; ++i) {
    for (const Permutation::Key key : {Permutation::Key{.seed = i}, {.pass = i}, {.round = i}}) {
      orders.insert(order_of({100, 10, 10}, key));
      Order blocks;
      for (std::size_t at = 0; at < 100; at += 10)
        blocks.push_back(order_of({100, 10, 10}, key)[at] / 10);
      of_blocks.insert(blocks);
    }
  }
  EXPECT_EQ(orders.size(), 15U);
  EXPECT_EQ(of_blocks.size(), 15U);
}

TEST(BlockOrderTest, HugeSizesAreComputedAtOnce) {
  const Sizes sizes{(1ULL << 61) + 12'345, 1'000'003, 64'000'000};
  const BlockOrder order(sizes, {.seed = 1});
  for (const std::uint64_t position : {std::uint64_t{0}, sizes.samples / 2, sizes.samples - 1})
    EXPECT_LT(order(position), sizes.samples);
  EXPECT_LT(BlockOrder({sizes.samples, UINT64_MAX, UINT64_MAX}, {})(5), sizes.samples);
}

TEST(BlockOrderTest, APositionBeyondTheEndIsOurMistake) {
  EXPECT_THROW(static_cast<void>(BlockOrder({10, 3, 0}, {})(10)), InternalError);
  EXPECT_THROW(static_cast<void>(BlockOrder({0, 3, 0}, {})(0)), InternalError);
}

/// Chi-square of a table of counts in which all are equally likely.
double chi_square(const std::vector<std::uint64_t>& counts, double expected) {
  double sum = 0;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
  }
  return sum;
}

TEST(BlockOrderTest, EachBlockComesEquallyOftenAtEachSlot) {
  constexpr std::uint64_t kBlocks = 10;
  constexpr std::uint64_t kSeeds = 2000;
  // 95 samples: the last block is short. Its slot is drawn like that of the others.
  std::vector<std::uint64_t> counts(kBlocks * kBlocks);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Order order = order_of({95, 10, 10}, {.seed = seed});
    std::uint64_t slot = 0;
    for (std::size_t at = 0; at < order.size(); ++slot) {
      const std::uint64_t block = order[at] / 10;
      ++counts[slot * kBlocks + block];
      at += block == 9 ? 5 : 10;
    }
  }
  // 81 degrees of freedom: mean 81, standard deviation 12.7.
  EXPECT_LT(chi_square(counts, kSeeds / double{kBlocks}), 81 + 4 * 12.7);
}

TEST(BlockOrderTest, EachSampleComesEquallyOftenAtEachPositionOfItsWindow) {
  constexpr std::uint64_t kSamples = 12;
  constexpr std::uint64_t kSeeds = 2000;
  std::vector<std::uint64_t> counts(kSamples * kSamples);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Order order = order_of({kSamples, 3, 6}, {.seed = seed});
    for (std::size_t at = 0; at < kSamples; ++at) ++counts[at * kSamples + order[at]];
  }
  EXPECT_LT(chi_square(counts, kSeeds / double{kSamples}), 121 + 4 * 15.6);
}

// Golden values: saved states count positions in these orders.
TEST(BlockOrderTest, TheOrderNeverChanges) {
  EXPECT_EQ(order_of({20, 4, 8}, {.seed = 7, .pass = 1, .round = 2}),
            (Order{16, 19, 9, 11, 18, 17, 10, 8, 15, 4, 14, 13, 12, 5, 6, 7, 0, 3, 2, 1}));
  EXPECT_EQ(order_of({11, 4, 8}, {.seed = 7}), (Order{1, 4, 3, 2, 6, 0, 5, 7, 9, 8, 10}));
}

}  // namespace
}  // namespace penstock
