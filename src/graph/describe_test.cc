#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/node.h"

namespace penstock {
namespace {

Dataset array(const std::vector<float>& values, const SourceOptions& options = {}) {
  return Dataset::from_tensor_slices(Tensor::of(values), options);
}

Dataset indexed(std::uint64_t size, const std::string& name) {
  return Dataset::from_index(size, [](std::uint64_t i) { return float(i); }, {.name = name});
}

float half(std::int64_t x) {
  return static_cast<float>(x) / 2;
}

std::string last_line(const Dataset& dataset) {
  return describe_node(*dataset.node());
}

TEST(DescribeTest, EveryNodeIsOneLineWithItsArguments) {
  const Dataset data = Dataset::range(10);
  const Dataset batches = data.batch(4);
  const auto same = [](const Sample& sample) { return sample; };
  const auto jitter = [](std::int64_t x, Rng&) { return x; };
  const std::vector<std::pair<Dataset, std::string>> expected = {
      {Dataset::range(2, 9, 3), "range(2, 9, 3)"},
      {array({1, 2}), "from_tensor_slices(2 x f32[])"},
      {indexed(7, "seven"), "from_index(7, seven)"},
      {data.map(cast(Dtype::f32)), "cast(f32)"},
      {data.map(half), "map (i64) -> (f32)"},
      {data.map(half, {.name = "half"}), "map \"half\" (i64) -> (f32)"},
      {data.map(jitter, {.seed = 9}), "map (i64) -> (i64), seed=9"},
      {batches.map(same), "map (Sample) -> Sample, on whole batches"},
      {batches, "batch(4)"},
      {data.batch(4, {.tail = Tail::drop}), "batch(4, tail=drop)"},
      {data.batch(4, {.tail = Tail::short_}), "batch(4, tail=short)"},
      {data.batch(4, {.tail = Tail::even}), "batch(4, tail=even)"},
      {data.batch(4, {.tail = Tail::pad}), "batch(4, tail=pad)"},
      {data.batch(4, {.tail = Tail::wrap}), "batch(4, tail=wrap)"},
      {data.batch(4, {.tail = Tail::strict}), "batch(4, tail=strict)"},
      {batches.unbatch(), "unbatch()"},
      {data.shuffle(), "shuffle(seed=0)"},
      {data.shuffle({.seed = Seed::random()}), "shuffle(seed=random)"},
      {data.shuffle({.seed = 7, .reshuffle_each_epoch = false}),
       "shuffle(seed=7, same every epoch)"},
      {data.repeat(), "repeat(for ever)"},
      {data.repeat(3), "repeat(3)"},
      {data.take(-1), "take(all)"},
      {data.skip(2), "skip(2)"},
      {data.shard(4, 1), "shard(4, 1)"},
      {data.concatenate(data), "concatenate()"},
      {Dataset::zip({data, data}, {.strict = true}), "zip(strict)"},
      {data.enumerate(), "enumerate()"},
      {data.cache(), "cache()"},
      {data.prefetch({.steps = 2, .bytes = 64}), "prefetch(steps=2, bytes=64)"},
      {data.with_options({.name = "data"}), "with_options(name=\"data\")"}};
  for (const auto& [dataset, line] : expected) EXPECT_EQ(last_line(dataset), line);
}

TEST(DescribeTest, DescribeListsNodesInOrderWithTheirElements) {
  const Dataset left = Dataset::range(5).map(half);
  const Dataset right = Dataset::range(3).map(cast(Dtype::f32)).repeat();
  EXPECT_EQ(left.concatenate(right.take(1)).shuffle({.seed = 7}).batch(4).describe(),
            "  range(0, 5, 1)  [5 samples of i64[]]\n"
            "  map (i64) -> (f32)  [5 samples of f32[]]\n"
            "  range(0, 3, 1)  [3 samples of i64[]]\n"
            "  cast(f32)  [3 samples of f32[]]\n"
            "  repeat(for ever)  [endless of f32[]]\n"
            "  take(1)  [1 samples of f32[]]\n"
            "concatenate()  [6 samples of f32[]]\n"
            "shuffle(seed=7)  [6 samples of f32[]]\n"
            "batch(4)  [2 steps of f32[]]\n");
}

TEST(DatasetDigestTest, TheOrderDigestIgnoresValuesHintsNamesAndTheBatchSize) {
  const Dataset samples = array({1, 2, 3, 4, 5}).shuffle({.seed = 7});
  const std::string order = samples.batch(2).digests().order;
  const auto twice = [](float x) { return x * 2; };
  const auto jitter = [](float x, Rng& rng) { return x + float(rng.uniform()); };
  const std::vector<Dataset> alike = {
      samples.batch(3),
      samples.batch(2, {.tail = Tail::drop}),
      samples.batch(2, {.tail = Tail::even}),
      samples.batch(2, {.tail = Tail::wrap}),
      samples.map(twice).batch(2),
      samples.map(twice, {.name = "twice"}).batch(2),
      samples.map(cast(Dtype::f64)).batch(2).map(cast(Dtype::f32)),
      samples.map(jitter, {.seed = 3}).batch(2),
      samples.enumerate().batch(2),
      samples.prefetch({.steps = 3}).batch(2).prefetch({.bytes = 10}),
      samples.with_options({.name = "data", .threads = 1, .lookahead_bytes = 5}).batch(4),
      array({1, 2, 3, 4, 5}, {.name = "five"}).shuffle({.seed = 7}).batch(2)};
  for (const Dataset& dataset : alike)
    EXPECT_EQ(dataset.digests().order, order) << dataset.describe();
}

TEST(DatasetDigestTest, DifferentOrdersHaveDifferentDigests) {
  const Dataset samples = array({1, 2, 3, 4, 5});
  const Dataset other = array({1, 2, 3, 4, 6});
  const std::vector<Dataset> different = {samples,
                                          other,
                                          array({1, 2, 3, 4}),
                                          Dataset::range(5),
                                          Dataset::range(6),
                                          Dataset::range(1, 6),
                                          indexed(5, "a"),
                                          indexed(5, "b"),
                                          indexed(6, "a"),
                                          samples.shuffle(),
                                          samples.shuffle({.seed = 7}),
                                          samples.shuffle({.seed = Seed::random()}),
                                          samples.shuffle({.reshuffle_each_epoch = false}),
                                          samples.shuffle().shuffle(),
                                          samples.take(3),
                                          samples.take(4),
                                          samples.skip(3),
                                          samples.shard(3, 0),
                                          samples.shard(3, 1),
                                          samples.repeat(),
                                          samples.repeat(3),
                                          samples.shuffle().repeat(3),
                                          samples.repeat(3).shuffle(),
                                          samples.shuffle().cache(),
                                          samples.concatenate(samples),
                                          samples.concatenate(other),
                                          other.concatenate(samples),
                                          Dataset::zip({samples, samples}),
                                          Dataset::zip({samples, samples.shuffle()}),
                                          Dataset::zip({samples, samples}).shuffle()};
  std::set<std::string> orders;
  std::set<std::string> batched_orders;
  for (const Dataset& dataset : different) {
    EXPECT_TRUE(orders.insert(dataset.digests().order).second) << dataset.describe();
    EXPECT_TRUE(batched_orders.insert(dataset.batch(2).digests().order).second)
        << dataset.describe();
  }
}

TEST(DatasetDigestTest, TheBatchSizeIsPartOfTheOrderIfStepsAreCounted) {
  const auto batches = [](std::int64_t size) { return Dataset::range(12).batch(size); };
  const std::vector<std::pair<Dataset, Dataset>> counted = {
      {batches(2).take(2), batches(3).take(2)},
      {batches(2).skip(2), batches(3).skip(2)},
      {batches(2).shard(2, 0), batches(3).shard(2, 0)},
      {batches(2).shuffle(), batches(3).shuffle()},
      {batches(2).shuffle().repeat(2), batches(3).shuffle().repeat(2)},
      {batches(2).concatenate(batches(2)), batches(3).concatenate(batches(2))},
      {batches(2).unbatch().batch(4), batches(5).unbatch().batch(4)}};
  for (const auto& [one, other] : counted)
    EXPECT_NE(one.digests().order, other.digests().order) << one.describe();
}

TEST(DatasetDigestTest, TheBatchSizeMayChangeIfOnlyRepeatsCachesAndMapsFollowOneBatch) {
  const Dataset batches = Dataset::range(12).batch(2);
  const std::vector<Dataset> free = {
      batches, batches.repeat(2).repeat(),
      batches.cache().map(cast(Dtype::f32)).prefetch({.steps = 1}).with_options({}),
      batches.take(2).unbatch().batch(3)};
  for (const Dataset& dataset : free) {
    EXPECT_TRUE(batch_size_is_free(*dataset.node())) << dataset.describe();
  }
  const std::vector<Dataset> fixed = {batches.take(2),
                                      batches.take(-1),
                                      batches.skip(1),
                                      batches.shard(2, 1),
                                      batches.shuffle(),
                                      batches.concatenate(batches),
                                      batches.shuffle().repeat(2),
                                      batches.take(2).map(cast(Dtype::f32)),
                                      batches.unbatch()};
  for (const Dataset& dataset : fixed) {
    EXPECT_FALSE(batch_size_is_free(*dataset.node())) << dataset.describe();
  }
}

TEST(DatasetDigestTest, ValuesChangeWithOpsAndTheirNamesAndArguments) {
  const Dataset data = Dataset::range(12);
  const auto jitter = [](std::int64_t x, Rng&) { return x; };
  const std::vector<Dataset> different = {data,
                                          data.map(cast(Dtype::f32)),
                                          data.map(cast(Dtype::f64)),
                                          data.map(cast(Dtype::f64)).map(cast(Dtype::f32)),
                                          Dataset::zip({data, data}),
                                          Dataset::zip({data, data}).map(cast(Dtype::f32, "0")),
                                          Dataset::zip({data, data}).map(cast(Dtype::f32, "1")),
                                          data.enumerate(),
                                          data.map(half),
                                          data.map(half, {.name = "half"}),
                                          data.map(half, {.name = "halved"}),
                                          data.map(jitter, {.seed = 1}),
                                          data.map(jitter, {.seed = 2})};
  std::set<std::string> values;
  for (const Dataset& dataset : different)
    EXPECT_TRUE(values.insert(dataset.digests().values).second) << dataset.describe();
}

TEST(DatasetDigestTest, ValuesDoNotChangeWithOrderOrBatchSize) {
  const auto values = [](std::int64_t count, std::uint64_t seed, std::int64_t size) {
    return Dataset::range(count).map(half).shuffle({.seed = seed}).batch(size).digests().values;
  };
  EXPECT_EQ(values(12, 1, 2), values(12, 2, 2));
  EXPECT_EQ(values(12, 1, 2), values(12, 1, 3));
  EXPECT_EQ(values(12, 1, 2), values(13, 1, 2));
}

TEST(DatasetDigestTest, ThePartsOfAnOrderNameSourcesByDigestAndNodesByLine) {
  const Dataset data = Dataset::range(12).map(half).shuffle({.seed = 7}).batch(5);
  const auto free = order_lines(*data.node(), std::nullopt);
  ASSERT_EQ(free.size(), 2U);
  EXPECT_EQ(free[0].substr(0, 7), "range #");
  EXPECT_EQ(free[0].size(), 15U);
  EXPECT_EQ(free[1], "shuffle(seed=7)");
  const auto counted = order_lines(*data.take(2).node(), std::nullopt);
  EXPECT_EQ(counted, (std::vector<std::string>{free[0], free[1], "batch(5)", "take(2)"}));
}

// States of earlier releases contain these digests: they change only on purpose.
TEST(DatasetDigestTest, TheOrderDigestStaysTheSameFromReleaseToRelease) {
  EXPECT_EQ(Dataset::range(10).digests().order, "eecbf5bc535a16e6");
  EXPECT_EQ(array({1, 2, 3}).shuffle({.seed = 7}).repeat(2).batch(2).take(1).digests().order,
            "73359153f12c45c1");
}

TEST(DescribeTest, TheValuesDigestIgnoresHints) {
  const Dataset data = Dataset::range(12).map(cast(Dtype::f32)).batch(2);
  EXPECT_EQ(data.prefetch({.steps = 2}).digests().values, data.digests().values);
  EXPECT_EQ(data.with_options({.threads = 2}).digests().values, data.digests().values);
}

TEST(DescribeTest, TheShapeOfATreeOfZipsIsPartOfTheOrder) {
  const Dataset a = Dataset::range(9);
  const Dataset b = Dataset::range(1, 10);
  const Dataset c = Dataset::range(2, 11);
  EXPECT_NE(Dataset::zip({a, Dataset::zip({b, c}).shuffle()}).digests().order,
            Dataset::zip({Dataset::zip({a, b, c}).shuffle()}).digests().order);
}

TEST(DatasetDigestTest, TailsThatChangeStepsArePartOfTheOrderIfStepsAreCounted) {
  const auto order = [](std::optional<Tail> tail) {
    return Dataset::range(5).batch(2, {.tail = tail}).shuffle().digests().order;
  };
  EXPECT_EQ(order(Tail::short_), order({}));
  EXPECT_EQ(order(Tail::pad), order({}));
  EXPECT_EQ(order(Tail::strict), order({}));
  EXPECT_NE(order(Tail::drop), order({}));
  EXPECT_NE(order(Tail::even), order({}));
  EXPECT_NE(order(Tail::wrap), order({}));
  EXPECT_NE(order(Tail::wrap), order(Tail::even));
}

}  // namespace
}  // namespace penstock
