#include "order/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "penstock/rng.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint32_t> in_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

TEST(PackingTest, AStreamCutsDocumentsWhereARowEnds) {
  const std::vector<std::uint32_t> lengths{3, 0, 4};
  const PackedBlock block = pack_block(lengths, in_order(3), {.length = 4, .separated = true});
  ASSERT_EQ(block.rows(), 3U);
  EXPECT_THAT(block.row(0), ElementsAre(DocumentPart{0, 0, 4, 0})) << "with its separator";
  EXPECT_THAT(block.row(1), ElementsAre(DocumentPart{2, 0, 4, 0}));
  EXPECT_THAT(block.row(2), ElementsAre(DocumentPart{2, 4, 1, 0}));
}

TEST(PackingTest, BestFitKeepsDocumentsWhole) {
  const std::vector<std::uint32_t> lengths{3, 5, 2, 7};
  const PackRules rules{.length = 8, .how = PackHow::best_fit};
  const PackedBlock block = pack_block(lengths, in_order(4), rules);
  ASSERT_EQ(block.rows(), 3U);
  EXPECT_THAT(block.row(0), ElementsAre(DocumentPart{3, 0, 7, 0}));
  EXPECT_THAT(block.row(1), ElementsAre(DocumentPart{1, 0, 5, 0}, DocumentPart{0, 0, 3, 5}));
  EXPECT_THAT(block.row(2), ElementsAre(DocumentPart{2, 0, 2, 0}));
}

TEST(PackingTest, DocumentsLongerThanARowFollowTheirPolicy) {
  const std::vector<std::uint32_t> lengths{10, 2};
  const auto parts_with = [&](LongDocument policy) {
    const PackRules rules{.length = 4, .how = PackHow::best_fit, .too_long = policy};
    return pack_block(lengths, in_order(2), rules).parts;
  };
  EXPECT_THAT(parts_with(LongDocument::split),
              ElementsAre(DocumentPart{0, 0, 4, 0}, DocumentPart{0, 4, 4, 0},
                          DocumentPart{0, 8, 2, 0}, DocumentPart{1, 0, 2, 2}));
  EXPECT_THAT(parts_with(LongDocument::cut),
              ElementsAre(DocumentPart{0, 0, 4, 0}, DocumentPart{1, 0, 2, 0}));
  EXPECT_THAT(parts_with(LongDocument::drop), ElementsAre(DocumentPart{1, 0, 2, 0}));
}

TEST(PackingTest, EveryTokenIsInOneRowAndTheNumberOfRowsDoesNotDependOnTheOrder) {
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    Rng rng(seed, 3);
    PackRules rules{.length = 1 + rng.integer(30),
                    .how = rng.integer(2) == 0 ? PackHow::stream : PackHow::best_fit,
                    .separated = rng.integer(2) == 0};
    std::vector<std::uint32_t> lengths(rng.integer(40));
    for (std::uint32_t& length : lengths)
      length = static_cast<std::uint32_t>(rng.integer(rng.integer(3) == 0 ? 100 : 12));
    std::vector<std::uint32_t> order = in_order(lengths.size());
    const std::size_t rows = pack_block(lengths, order, rules).rows();
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.integer(i)]);
    const PackedBlock block = pack_block(lengths, order, rules);
    ASSERT_EQ(block.rows(), rows) << seed;
    std::map<std::uint32_t, std::vector<bool>> seen;
    for (std::size_t row = 0; row < block.rows(); ++row) {
      std::uint64_t at = 0;
      for (const DocumentPart& part : block.row(row)) {
        ASSERT_EQ(part.at, at) << seed;
        at += part.count;
        auto& tokens = seen[part.document];
        tokens.resize(lengths[part.document] + (rules.separated ? 1 : 0));
        for (std::uint32_t i = 0; i < part.count; ++i) {
          ASSERT_FALSE(tokens[part.first + i]) << seed;
          tokens[part.first + i] = true;
        }
        const bool whole = rules.how == PackHow::best_fit && tokens.size() <= rules.length;
        ASSERT_TRUE(!whole || part.count == tokens.size()) << seed;
      }
      ASSERT_GT(at, 0U);
      ASSERT_LE(at, rules.length);
      const bool full = rules.how == PackHow::stream && row + 1 < block.rows();
      ASSERT_TRUE(!full || at == rules.length) << seed;
    }
    for (std::uint32_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == 0) continue;
      ASSERT_EQ(std::ranges::count(seen[i], true), static_cast<std::int64_t>(seen[i].size()))
          << seed;
    }
  }
}

TEST(PackingTest, BestFitLeavesLessThanOnePercentOfTypicalDocuments) {
  Rng rng(1, 1);
  std::vector<std::uint32_t> lengths(4096);
  std::uint64_t tokens = 0;
  for (std::uint32_t& length : lengths) {
    length = static_cast<std::uint32_t>(std::min(2048.0, 1 + std::exp(6 + rng.normal())));
    tokens += length;
  }
  const PackedBlock block =
      pack_block(lengths, in_order(lengths.size()), {.length = 2048, .how = PackHow::best_fit});
  EXPECT_GT(static_cast<double>(tokens), 0.99 * 2048 * static_cast<double>(block.rows()));
}

}  // namespace
}  // namespace penstock
