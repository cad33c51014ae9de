#include "penstock/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/node.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Make = std::function<Dataset()>;

/// The message of the ConfigError that building the dataset throws.
std::string refusal(const Make& make) {
  try {
    (void)make();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "it was accepted";
}

Dataset numbers(std::int64_t count) {
  return Dataset::range(count);
}

Dataset pairs() {
  return Dataset::zip({numbers(4), numbers(4).map(cast(Dtype::f32))});
}

/// Samples whose spec is unknown before running.
Dataset unknown() {
  return Dataset::from_index(4, [](std::uint64_t) { return Sample(Tensor::scalar(1.0F)); });
}

Dataset texts() {
  return Dataset::from_tensors(Tensor::bytes("some text"));
}

Sample same(const Sample& sample) {
  return sample;
}

Dataset endless_data() {
  return numbers(4).repeat();
}

TEST(DatasetTest, InvalidCountsThrow) {
  EXPECT_THAT(refusal([] { return numbers(4).batch(0); }),
              AllOf(HasSubstr("batch"), HasSubstr("positive"), HasSubstr("got 0")));
  EXPECT_THAT(refusal([] { return numbers(4).batch(-3); }), HasSubstr("got -3"));
  EXPECT_THAT(refusal([] { return numbers(4).take(-2); }),
              AllOf(HasSubstr("take"), HasSubstr("got -2"), HasSubstr("take(-1) means all")));
  EXPECT_THAT(refusal([] { return numbers(4).skip(-2); }),
              AllOf(HasSubstr("skip"), HasSubstr("got -2"), HasSubstr("skip(-1) means all")));
  EXPECT_THAT(refusal([] { return numbers(4).repeat(-2); }),
              AllOf(HasSubstr("repeat"), HasSubstr("got -2"), HasSubstr("forever")));
  EXPECT_THAT(refusal([] { return numbers(4).shard(0, 0); }),
              AllOf(HasSubstr("shard"), HasSubstr("positive"), HasSubstr("got 0")));
  EXPECT_THAT(refusal([] { return numbers(4).shard(3, 3); }),
              AllOf(HasSubstr("shard"), HasSubstr("0..2"), HasSubstr("got 3")));
  EXPECT_THAT(refusal([] { return numbers(4).shard(3, -1); }), HasSubstr("got -1"));
}

TEST(DatasetTest, MoreElementsThanCanBeNumberedAreRefused) {
  EXPECT_THAT(refusal([] { return numbers(1LL << 40).repeat(1LL << 23); }),
              AllOf(HasSubstr("repeat"), HasSubstr("above 2^62")));
  EXPECT_THAT(refusal([] { return numbers(1LL << 62).repeat(INT64_MAX); }), HasSubstr("2^62"));
  EXPECT_EQ(numbers(1LL << 40).repeat(1LL << 22).cardinality(), Cardinality::of(1ULL << 62));
}

TEST(DatasetTest, VerbsOfSamplesRejectBatches) {
  const Dataset batches = numbers(4).batch(2);
  EXPECT_THAT(refusal([&] { return batches.batch(2); }),
              AllOf(HasSubstr("batch: "), HasSubstr("already batches"), HasSubstr("unbatch()")));
  EXPECT_THAT(refusal([&] { return batches.shuffle().batch(2); }), HasSubstr("already batches"));
  EXPECT_THAT(refusal([&] { return Dataset::zip({numbers(4), batches}); }),
              AllOf(HasSubstr("zip: "), HasSubstr("already batches")));
  EXPECT_THAT(refusal([&] { return batches.enumerate(); }),
              AllOf(HasSubstr("enumerate: "), HasSubstr("already batches")));
}

TEST(DatasetTest, OneBatchHasOneTailPolicy) {
  EXPECT_THAT(
      refusal([] { return numbers(4).batch(2, {.tail = Tail::short_, .drop_remainder = true}); }),
      AllOf(HasSubstr("drop_remainder"), HasSubstr("another tail policy")));
  EXPECT_EQ(numbers(5).batch(2, {.tail = Tail::drop, .drop_remainder = true}).cardinality(),
            Cardinality::of(2));
  EXPECT_EQ(numbers(5).batch(2, {.drop_remainder = true}).digests(),
            numbers(5).batch(2, {.tail = Tail::drop}).digests());
}

TEST(DatasetTest, RowsThatMayDifferInShapeAreBatched) {
  const SourceOptions options{.spec = ElementSpec::single(Dtype::f32, {3, kUnknown})};
  EXPECT_EQ(
      refusal([&] {
        return Dataset::from_index(4, [](std::uint64_t) { return Sample(); }, options).batch(2);
      }),
      "it was accepted");
  EXPECT_EQ(refusal([] { return texts().batch(2); }), "it was accepted");
}

TEST(DatasetTest, AnEndlessDatasetIsNeitherShuffledNorCachedNorCounted) {
  EXPECT_THAT(refusal([] { return endless_data().shuffle(); }),
              AllOf(HasSubstr("shuffle: "), HasSubstr("endless"), HasSubstr("before repeat")));
  EXPECT_THAT(refusal([] { return endless_data().batch(2).shuffle(); }), HasSubstr("endless"));
  EXPECT_THAT(refusal([] { return endless_data().cache(); }),
              AllOf(HasSubstr("cache: "), HasSubstr("endless"), HasSubstr("before repeat")));
  EXPECT_THROW((void)endless_data().cardinality().count(), ConfigError);
}

TEST(DatasetTest, ZipNeedsPartsAndWithStrictEqualLengths) {
  EXPECT_THAT(refusal([] { return Dataset::zip({}); }), HasSubstr("zip: "));
  EXPECT_THAT(refusal([] { return Dataset::zip({numbers(4), numbers(5)}, {.strict = true}); }),
              AllOf(HasSubstr("zip: "), HasSubstr("different lengths"), HasSubstr("strict")));
  EXPECT_THAT(refusal([] { return Dataset::zip({numbers(4), endless_data()}, {.strict = true}); }),
              HasSubstr("different lengths"));
  EXPECT_EQ(Dataset::zip({numbers(4), numbers(4)}, {.strict = true}).cardinality(),
            Cardinality::of(4));
}

TEST(DatasetTest, ConcatenateRejectsSidesOfDifferentKinds) {
  EXPECT_THAT(refusal([] { return numbers(4).concatenate(numbers(4).map(cast(Dtype::f32))); }),
              AllOf(HasSubstr("concatenate: "), HasSubstr("i64[]"), HasSubstr("f32[]")));
  EXPECT_THAT(refusal([] { return numbers(4).concatenate(pairs()); }), HasSubstr("(i64[], f32[])"));
  EXPECT_THAT(refusal([] { return numbers(4).concatenate(numbers(4).batch(2)); }),
              AllOf(HasSubstr("concatenate: "), HasSubstr("batched")));
}

TEST(DatasetTest, UnbatchNeedsBatchesWhoseRowsAreInOrder) {
  const Dataset batches = numbers(4).batch(2);
  EXPECT_THAT(refusal([] { return Dataset::range(4).unbatch(); }),
              AllOf(HasSubstr("unbatch: "), HasSubstr("no first dimension of rows")));
  EXPECT_THAT(refusal([&] { return batches.shuffle({.seed = 3}).unbatch(); }),
              AllOf(HasSubstr("unbatch: "), HasSubstr("shuffle(seed=3)")));
  EXPECT_THAT(refusal([&] { return batches.shard(2, 1).repeat(2).unbatch(); }),
              HasSubstr("shard(2, 1)"));
  EXPECT_THAT(refusal([&] { return batches.concatenate(batches.shuffle()).unbatch(); }),
              HasSubstr("shuffle"));
  EXPECT_THAT(refusal([&] { return batches.map(same).unbatch(); }), HasSubstr("on whole batches"));
  EXPECT_EQ(refusal([&] {
              return numbers(4).shuffle().shard(2, 0).batch(2).map(cast(Dtype::i8)).unbatch();
            }),
            "it was accepted");
}

TEST(DatasetTest, BatchesAreCachedOnlyIfTheirRowsKeepTheirOrder) {
  const Dataset batches = numbers(8).batch(2);
  const std::vector<Dataset> moved = {batches.repeat(2), batches.take(2),
                                      batches.skip(1),   batches.shard(2, 0),
                                      batches.shuffle(), batches.concatenate(batches),
                                      batches.map(same), batches.repeat(2).map(cast(Dtype::u8))};
  for (const Dataset& dataset : moved)
    EXPECT_THAT(refusal([&] { return dataset.cache(); }),
                AllOf(HasSubstr("cache: batches cannot be cached after"),
                      HasSubstr("put cache() before it")));
  EXPECT_EQ(
      refusal([&] { return batches.map(cast(Dtype::u8)).prefetch({.steps = 2}).cache().cache(); }),
      "it was accepted");
}

TEST(DatasetTest, ATypedFunctionMustMatchTheFields) {
  EXPECT_THAT(refusal([] { return pairs().map([](std::int64_t x) { return x; }); }),
              AllOf(HasSubstr("takes 1 values"), HasSubstr("(i64[], f32[])")));
  EXPECT_THAT(refusal([] {
                return numbers(4).map([](std::int64_t x, float y) { return y + float(x); },
                                      {.name = "sum"});
              }),
              AllOf(HasSubstr("sum"), HasSubstr("takes 2 values"), HasSubstr("i64[]")));
  EXPECT_THAT(refusal([] { return numbers(4).map([](float x) { return x; }); }),
              AllOf(HasSubstr("parameter 0"), HasSubstr("f32"), HasSubstr("i64")));
  EXPECT_THAT(refusal([] { return texts().map([](std::uint8_t x) { return x; }); }),
              HasSubstr("bytes"));
  EXPECT_THAT(refusal([] {
                const auto rows = Tensor::of<std::int64_t>(std::vector<std::int64_t>(6), {2, 3});
                return Dataset::zip({numbers(2), Dataset::from_tensor_slices(rows)})
                    .map([](std::int64_t x, std::int64_t y) { return x + y; });
              }),
              AllOf(HasSubstr("one shape"), HasSubstr("i64[]"), HasSubstr("i64[3]")));
}

TEST(DatasetTest, AFunctionOfWholeBatchesNeedsAKnownSpec) {
  EXPECT_THAT(refusal([] { return unknown().batch(2).map(same); }),
              AllOf(HasSubstr("whole batches"), HasSubstr("declare .spec")));
  EXPECT_THAT(refusal([] { return texts().batch(2).map(same); }),
              AllOf(HasSubstr("no batch tensor"), HasSubstr("row_wise")));
  EXPECT_THAT(
      refusal([] { return numbers(4).batch(2).map([](const Sample& s, Rng&) { return s; }); }),
      AllOf(HasSubstr("Rng"), HasSubstr("row_wise")));
  EXPECT_EQ(refusal([] { return unknown().batch(2).map(same, {.row_wise = true}); }),
            "it was accepted");
}

TEST(DatasetTest, AfterAFunctionOfWholeBatchesResultsAreKnownAndNotRandom) {
  const Dataset whole = numbers(4).batch(2).map(same);
  EXPECT_THAT(refusal([&] { return whole.map(same, {.row_wise = true}); }),
              AllOf(HasSubstr("after a function of whole batches"), HasSubstr("known")));
  EXPECT_THAT(refusal([&] {
                return whole.prefetch({.steps = 1}).map([](std::int64_t x, Rng&) { return x; });
              }),
              HasSubstr("no Rng"));
  EXPECT_EQ(refusal([&] { return whole.map([](std::int64_t x) { return x; }); }),
            "it was accepted");
}

TEST(DatasetTest, ABlockFunctionDeclaresTheDenseFieldsItWrites) {
  const auto nothing = [](const Block&, Block&) {};
  EXPECT_THAT(refusal([&] { return numbers(4).map(nothing); }),
              AllOf(HasSubstr("block function"), HasSubstr("spec")));
  EXPECT_THAT(refusal([&] {
                return numbers(4).map(nothing, {.spec = ElementSpec::single(Dtype::string)});
              }),
              AllOf(HasSubstr("dense"), HasSubstr("string")));
}

// A dataset, and the number of elements that a list of them would have.
struct Sized {
  Dataset dataset;
  std::uint64_t count;
};

std::vector<Sized> grown(const Sized& from) {
  const Dataset& data = from.dataset;
  const std::uint64_t n = from.count;
  const std::uint64_t every_third_after_first = n < 2 ? 0 : (n - 2) / 3 + 1;
  return {{data, n},
          {data.take(-1), n},
          {data.take(0), 0},
          {data.take(5), std::min<std::uint64_t>(n, 5)},
          {data.skip(-1), 0},
          {data.skip(0), n},
          {data.skip(3), n < 3 ? 0 : n - 3},
          {data.shard(3, 1), every_third_after_first},
          {data.shard(1, 0), n},
          {data.repeat(0), 0},
          {data.repeat(3), 3 * n},
          {data.shuffle(), n},
          {data.concatenate(data), 2 * n},
          {data.prefetch({.steps = 1}), n},
          {data.with_options({.name = "data"}), n}};
}

TEST(DatasetTest, CardinalityEqualsTheNumberOfElements) {
  for (std::uint64_t count = 0; count <= 12; ++count) {
    for (const Sized& one : grown({numbers(static_cast<std::int64_t>(count)), count})) {
      for (const Sized& two : grown(one)) {
        const Dataset& data = two.dataset;
        ASSERT_EQ(data.cardinality(), Cardinality::of(two.count)) << data.describe();
        ASSERT_EQ(data.enumerate().cardinality(), Cardinality::of(two.count));
        ASSERT_EQ(data.cache().cardinality(), Cardinality::of(two.count));
        ASSERT_EQ(Dataset::zip({data, numbers(5)}).cardinality(),
                  Cardinality::of(std::min<std::uint64_t>(two.count, 5)));
        for (std::uint64_t size = 1; size <= 5; ++size) {
          const Dataset batches = data.batch(static_cast<std::int64_t>(size));
          const Dataset full = data.batch(static_cast<std::int64_t>(size), {.tail = Tail::drop});
          ASSERT_EQ(batches.cardinality(), Cardinality::of((two.count + size - 1) / size));
          ASSERT_EQ(full.cardinality(), Cardinality::of(two.count / size));
          ASSERT_EQ(batches.unbatch().cardinality(), Cardinality::of(two.count));
          ASSERT_EQ(full.unbatch().cardinality(), Cardinality::of(two.count / size * size));
        }
      }
    }
  }
}

TEST(DatasetTest, CardinalityOfBatchesCountsSteps) {
  for (std::uint64_t count = 0; count <= 12; ++count) {
    const Dataset batches = numbers(static_cast<std::int64_t>(count)).batch(2);
    for (const Sized& one : grown({batches, (count + 1) / 2}))
      for (const Sized& two : grown(one)) {
        ASSERT_EQ(two.dataset.cardinality(), Cardinality::of(two.count)) << two.dataset.describe();
        ASSERT_TRUE(two.dataset.batched());
      }
  }
}

TEST(DatasetTest, EndlessDataStaysEndlessUntilSomethingEndsIt) {
  const Dataset data = endless_data();
  const std::vector<Dataset> endless = {data,
                                        data.skip(7),
                                        data.take(-1),
                                        data.shard(3, 2),
                                        data.repeat(2),
                                        data.repeat(),
                                        data.batch(3),
                                        data.batch(3).unbatch(),
                                        data.enumerate(),
                                        data.concatenate(numbers(2)),
                                        numbers(2).concatenate(data),
                                        Dataset::zip({data, data})};
  for (const Dataset& dataset : endless)
    EXPECT_TRUE(dataset.cardinality().is_endless()) << dataset.describe();
  EXPECT_EQ(data.take(9).cardinality(), Cardinality::of(9));
  EXPECT_EQ(data.skip(-1).cardinality(), Cardinality::of(0));
  EXPECT_EQ(data.repeat(0).cardinality(), Cardinality::of(0));
  EXPECT_EQ(Dataset::zip({data, numbers(3)}).cardinality(), Cardinality::of(3));
  EXPECT_EQ(data.batch(3).take(2).unbatch().cardinality(), Cardinality::of(6));
}

TEST(DatasetTest, AnEmptyDatasetRepeatedForeverIsEmpty) {
  EXPECT_EQ(numbers(0).repeat().cardinality(), Cardinality::of(0));
  EXPECT_EQ(numbers(0).repeat().shuffle().batch(4).repeat().cardinality(), Cardinality::of(0));
  EXPECT_EQ(numbers(3).batch(4, {.tail = Tail::drop}).repeat().cardinality(), Cardinality::of(0));
}

TEST(DatasetTest, ElementSpecFollowsTheValues) {
  const auto image = Tensor::of<std::uint8_t>(std::vector<std::uint8_t>(24), {4, 3, 2});
  const Dataset images = Dataset::from_tensor_slices(
      Sample::dict({{"x", image}, {"id", Tensor::of(std::vector<std::int32_t>(4))}}));
  const auto sum = [](std::int64_t x, float y) { return std::tuple(y, x > 0); };
  const std::vector<std::pair<Dataset, std::string>> expected = {
      {numbers(4), "i64[]"},
      {images, "{id: i32[], x: u8[3, 2]}"},
      {Dataset::from_tensors(image), "u8[4, 3, 2]"},
      {texts(), "bytes[]"},
      {unknown(), "unknown"},
      {Dataset::from_index(4, [](std::uint64_t) { return 1.0; }), "f64[]"},
      {images.map(cast(Dtype::f32, "x")), "{id: i32[], x: f32[3, 2]}"},
      {pairs().map(sum), "(f32[], bool[])"},
      {numbers(4).map([](std::int64_t x, Rng&) { return float(x); }), "f32[]"},
      {numbers(4).map(same), "unknown"},
      {numbers(4).map(same, {.spec = ElementSpec::single(Dtype::i64)}), "i64[]"},
      {unknown().map([](float x) { return x; }), "unknown"},
      {images.batch(2), "{id: i32[], x: u8[3, 2]}"},
      {images.batch(2).map(same), "{id: i32[], x: u8[3, 2]}"},
      {images.batch(3).unbatch().shuffle().repeat().take(5), "{id: i32[], x: u8[3, 2]}"},
      {images.enumerate(), "(i64[], {id: i32[], x: u8[3, 2]})"},
      {Dataset::zip({numbers(4), pairs()}), "(i64[], (i64[], f32[]))"},
      {Dataset::zip({numbers(4), unknown()}), "unknown"},
      {numbers(4).map([](std::int64_t) { return 1.0F; }).concatenate(unknown()), "unknown"},
      {unknown().concatenate(numbers(4)), "unknown"}};
  for (const auto& [dataset, spec] : expected)
    EXPECT_EQ(dataset.element_spec().text(), spec) << dataset.describe();
}

TEST(DatasetTest, AddingAVerbDoesNotChangeTheDataset) {
  const Dataset data = numbers(10);
  const std::string before = data.describe();
  (void)data.shuffle().take(3).batch(2);
  EXPECT_EQ(data.describe(), before);
  EXPECT_FALSE(data.batched());
}

TEST(DatasetTest, ApplyPassesTheDatasetToAFunction) {
  const auto halved = [](const Dataset& data) { return data.shard(2, 0); };
  EXPECT_EQ(numbers(10).apply(halved).describe(), numbers(10).shard(2, 0).describe());
}

TEST(DatasetTest, ADeclaredSpecMustMatchTheArray) {
  const auto rows = Tensor::of(std::vector<std::int64_t>{1, 2, 3});
  const auto declare = [&](const ElementSpec& spec) {
    return Dataset::from_tensor_slices(rows, {.spec = spec});
  };
  EXPECT_THROW((void)declare(ElementSpec::single(Dtype::i64, {10})), ConfigError);
  EXPECT_THROW((void)declare(ElementSpec::unknown()), ConfigError);
}

TEST(DatasetTest, MoreElementsThanCanBeNumberedAreRefusedEverywhere) {
  const auto number = [](std::uint64_t i) { return static_cast<std::int64_t>(i); };
  const Dataset all = Dataset::from_index(1ULL << 62, number);
  EXPECT_THROW((void)all.concatenate(all).concatenate(all.concatenate(all)), ConfigError);
  EXPECT_THROW((void)all.batch(1LL << 61).repeat(1024), ConfigError);
  EXPECT_THROW((void)Dataset::range(INT64_MIN, INT64_MAX), ConfigError);
}

}  // namespace
}  // namespace penstock
