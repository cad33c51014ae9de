#include "graph/make_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/penstock.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

std::string refusal(const auto& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MakeNodeTest, AGraphThatIsTooDeepIsAConfigErrorWithARemedy) {
  Dataset deep = Dataset::range(3);
  const std::string text = refusal([&] {
    for (int i = 0; i < 20'000; ++i) deep = deep.skip(0);
  });
  EXPECT_THAT(text, HasSubstr("skip: the dataset would be 501 verbs deep"));
  EXPECT_THAT(text, HasSubstr("one skip(n)"));
}

TEST(MakeNodeTest, TheDeepestGraphOfTheLargestStagesRuns) {
  Dataset deep = Dataset::range(40);
  while (deep.node()->depth + 3 < kDepthMax)
    deep = deep.repeat(2).take(40).shuffle({.seed = deep.node()->depth});
  Loader loader(deep.batch(16), {.threads = 1});
  std::size_t rows = 0;
  while (auto batch = loader.next()) rows += batch->rows();
  EXPECT_EQ(rows, 40U);
}

TEST(MakeNodeTest, DoublingAGraphThrowsBeforeItUsesUpMemory) {
  Dataset twice = Dataset::range(3).map([](std::int64_t x) { return x + 1; });
  const std::string text = refusal([&] {
    for (int i = 0; i < 64; ++i) twice = twice.concatenate(twice);
  });
  EXPECT_THAT(text, HasSubstr("nodes, 200000 is the limit"));
  Dataset zipped = Dataset::range(3);
  const std::string zips = refusal([&] {
    for (int i = 0; i < 64; ++i)
      zipped = Dataset::zip({zipped, zipped}).map([](const Sample& s) { return s; });
  });
  EXPECT_THAT(zips, HasSubstr("is the limit"));
}

TEST(MakeNodeTest, TenThousandDatasetsCanBeConcatenated) {
  constexpr std::int64_t kParts = 10'000;
  Dataset joined = Dataset::range(0, 2);
  for (std::int64_t i = 1; i < kParts; ++i)
    joined = joined.concatenate(Dataset::range(2 * i, 2 * i + 2));
  EXPECT_EQ(joined.node()->depth, 2U) << "one node with many parts";
  EXPECT_EQ(joined.cardinality(), Cardinality::of(2 * kParts));
  Loader loader(joined.batch(3000), {.threads = 2});
  std::int64_t next = 0;
  while (auto batch = loader.next())
    for (const std::int64_t value : (*batch)[""].values<std::int64_t>()) ASSERT_EQ(value, next++);
  EXPECT_EQ(next, 2 * kParts);
}

TEST(MakeNodeTest, ThousandsOfBatchedDatasetsCanBeConcatenatedAndShuffled) {
  constexpr std::int64_t kParts = 2000;
  Dataset joined = Dataset::range(0, 3).batch(2);
  for (std::int64_t i = 1; i < kParts; ++i)
    joined = joined.concatenate(Dataset::range(3 * i, 3 * i + 3).batch(2));
  EXPECT_EQ(joined.cardinality(), Cardinality::of(2 * kParts));
  Loader loader(joined.shuffle({.seed = 4}), {.threads = 2});
  std::vector<int> came(3 * kParts, 0);
  while (auto batch = loader.next())
    for (const std::uint64_t id : batch->sample_id()) ++came[id];
  EXPECT_THAT(came, ::testing::Each(1));
}

TEST(MakeNodeTest, TheNestingOfConcatenatesMakesNoDifference) {
  const auto part = [](std::int64_t i) { return Dataset::range(10 * i, 10 * i + 3); };
  const Dataset left = part(0).concatenate(part(1)).concatenate(part(2));
  const Dataset right = part(0).concatenate(part(1).concatenate(part(2)));
  EXPECT_EQ(left.digests(), right.digests());
  EXPECT_EQ(left.node()->inputs.size(), 3U);
  EXPECT_EQ(right.node()->inputs.size(), 3U);
}

}  // namespace
}  // namespace penstock
