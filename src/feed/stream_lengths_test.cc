// Buckets of streams, and functions of whole padded batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/rng.h"
#include "penstock/state.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// Document i of a stream has lengths[i] times the token i.
Dataset stream_of(std::vector<std::int64_t> lengths) {
  return Dataset::from_generator([lengths = std::move(lengths)] {
    return [lengths, i = std::size_t{0}]() mutable -> std::optional<Sample> {
      if (i == lengths.size()) return std::nullopt;
      const auto token = static_cast<std::int64_t>(i);
      const auto length = static_cast<std::size_t>(lengths[i++]);
      return Sample::dict({{"id", Tensor::scalar(token)},
                           {"tokens", Tensor::of(std::vector<std::int64_t>(length, token))}});
    };
  });
}

std::vector<std::int64_t> random_lengths(std::size_t count, std::uint64_t seed) {
  Rng rng(seed, 1);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) length = static_cast<std::int64_t>(rng.integer(12));
  return lengths;
}

using Ids = std::vector<std::int64_t>;

Ids ids_of(const Batch& batch) {
  const Tensor ids = batch["id"];
  const auto values = ids.values<std::int64_t>();
  return {values.begin(), values.end()};
}

std::vector<Ids> steps_of(const Dataset& dataset, unsigned threads = 2) {
  Loader loader(dataset, {.threads = threads});
  std::vector<Ids> steps;
  for (const Batch& batch : loader) steps.push_back(ids_of(batch));
  return steps;
}

Dataset declared(std::int64_t count) {
  return Dataset::range(count).map(
      [](const Sample& sample) {
        const auto x = sample.tensor().item<std::int64_t>();
        return Sample::dict(
            {{"id", sample.tensor()},
             {"tokens", Tensor::of(std::vector<std::int64_t>(static_cast<std::size_t>(x), x))}});
      },
      {.spec = ElementSpec::dict({{"id", Dtype::i64, {}}, {"tokens", Dtype::i64, {kUnknown}}})});
}

struct Buckets {
  std::vector<std::int64_t> boundaries;
  std::vector<std::int64_t> sizes;
};

/// What buckets deliver, by definition: a step as soon as its bucket is full, or as soon as its
/// first sample has waited for `window` others; the rest at the end.
std::vector<Ids> expected_steps(const std::vector<std::int64_t>& lengths, const Buckets& buckets,
                                std::size_t window) {
  std::vector<Ids> steps;
  std::vector<Ids> pending(buckets.sizes.size());
  const auto deliver = [&](Ids& bucket) {
    if (!bucket.empty()) steps.push_back(std::exchange(bucket, {}));
  };
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto bucket = static_cast<std::size_t>(
        std::ranges::upper_bound(buckets.boundaries, lengths[i]) - buckets.boundaries.begin());
    pending[bucket].push_back(static_cast<std::int64_t>(i));
    if (static_cast<std::int64_t>(pending[bucket].size()) == buckets.sizes[bucket])
      deliver(pending[bucket]);
    for (Ids& each : pending)
      if (!each.empty() && i - static_cast<std::size_t>(each.front()) >= window) deliver(each);
  }
  for (Ids& each : pending) deliver(each);
  return steps;
}

TEST(StreamBucketsTest, AStepIsDeliveredWhenItsBucketIsFullAndTheRestAtTheEnd) {
  const Buckets buckets{{3, 7}, {5, 3, 2}};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto lengths = random_lengths(10 * seed, seed);
    const Dataset plain =
        stream_of(lengths).bucket_by_length(buckets.boundaries, buckets.sizes, {.field = "tokens"});
    EXPECT_EQ(steps_of(plain), expected_steps(lengths, buckets, SIZE_MAX));
    const Dataset windowed = stream_of(lengths).bucket_by_length(
        buckets.boundaries, buckets.sizes, {.field = "tokens", .window = seed + 1});
    EXPECT_EQ(steps_of(windowed), expected_steps(lengths, buckets, seed + 1));
  }
}

TEST(StreamBucketsTest, ResumingAnywhereContinuesWithTheSameSteps) {
  const auto lengths = random_lengths(300, 7);
  const Dataset dataset =
      stream_of(lengths).bucket_by_length({2, 9}, {7, 5, 3}, {.field = "tokens", .window = 80});
  const std::vector<Ids> all = steps_of(dataset);
  for (std::size_t done = 0; done <= all.size(); ++done) {
    Loader before(dataset, {.threads = 2});
    for (std::size_t i = 0; i < done; ++i) (void)before.next();
    Loader after(dataset, {.threads = 0});
    after.restore(before.state());
    for (std::size_t i = done; i < all.size(); ++i) {
      const auto batch = after.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(ids_of(*batch), all[i]);
    }
    if (done < all.size()) {
      EXPECT_FALSE(after.next());
    }
  }
}

TEST(StreamBucketsTest, RowsArePaddedOrRagged) {
  const Dataset stream = stream_of({1, 4, 2});
  Loader padded(stream.bucket_by_length({3}, {2, 2}, {.field = "tokens"}), {.threads = 0});
  const auto batch = padded.next();
  EXPECT_THAT(ids_of(*batch), ElementsAre(0, 2));
  EXPECT_EQ((*batch)["tokens"].shape(), (Shape{2, 2}));
  Loader ragged(stream.bucket_by_length({3}, {2, 2}, {.field = "tokens", .padding = std::nullopt}),
                {.threads = 0});
  EXPECT_TRUE(ragged.next()->is_ragged("tokens"));
}

TEST(StreamBucketsTest, AFunctionMayReturnTheLength) {
  const auto by_id = [](const Sample& sample) { return sample["id"].item<std::int64_t>() % 2; };
  const auto lengths = random_lengths(7, 1);
  EXPECT_EQ(steps_of(stream_of(lengths).bucket_by_length({1}, {2, 3}, {.length = by_id})),
            (std::vector<Ids>{{0, 2}, {1, 3, 5}, {4, 6}}));
  const auto indexed = Dataset::range(7).map(
      [](const Sample& sample) { return Sample::dict({{"id", sample.tensor()}}); });
  EXPECT_EQ(steps_of(indexed.bucket_by_length({1}, {2, 3}, {.length = by_id})),
            (std::vector<Ids>{{0, 2}, {4, 6}, {1, 3, 5}}));
}

TEST(StreamBucketsTest, SamplesWithoutALengthAreNamedOrSkipped) {
  const Dataset stream = stream_of({1, 30, 2});
  const Dataset buckets = stream.batch_by_tokens(8, {.field = "tokens"}, {3, 9});
  EXPECT_THAT([&] { (void)steps_of(buckets); },
              ThrowsMessage<SampleError>(HasSubstr("a sample has length 30")));
  Loader loader(buckets, {.threads = 1, .on_error = OnError::skip});
  EXPECT_THAT(ids_of(*loader.next()), ElementsAre(0, 2));
  EXPECT_EQ(loader.ledger().entries().size(), 1U);
  EXPECT_THAT([&] { (void)steps_of(stream.bucket_by_length({2}, {1, 1}, {.field = "id"})); },
              ThrowsMessage<SampleError>(HasSubstr("has no length")));
}

TEST(StreamBucketsTest, ManySkippedSamplesInARowAreNotTheEnd) {
  std::vector<std::int64_t> lengths(300, 1);
  std::fill(lengths.begin() + 64, lengths.begin() + 200, 99);
  Loader loader(stream_of(lengths).batch_by_tokens(8, {.field = "tokens"}, {2, 9}),
                {.threads = 1, .on_error = OnError::skip, .skip_limit = 200});
  std::vector<std::size_t> rows;
  for (const Batch& batch : loader) rows.push_back(batch.rows());
  EXPECT_EQ(rows, std::vector<std::size_t>(
                      {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4}));
  EXPECT_EQ(loader.ledger().entries().size(), 136U);
}

TEST(StreamBucketsTest, AStateOfOtherLengthsIsRefused) {
  const auto buckets = [](std::int64_t shift) {
    return Dataset::from_generator([] {
             return [i = std::int64_t{0}]() mutable {
               return i == 300 ? std::nullopt : std::optional(i++);
             };
           })
        .map([shift](const Sample& sample) {
          const auto x = sample.tensor().item<std::int64_t>();
          return Sample(Tensor::of(std::vector<std::int64_t>(x % shift == 0 ? 1U : 9U, x)));
        })
        .bucket_by_length({4}, {5, 40}, {.padding = std::nullopt});
  };
  Loader saved(buckets(3), {.threads = 0});
  for (int i = 0; i < 5; ++i) (void)saved.next();
  Loader other(buckets(1), {.threads = 0});
  EXPECT_THAT(
      [&] {
        other.restore(saved.state());
        (void)other.next();
      },
      ThrowsMessage<StateError>(HasSubstr("do not have the lengths")));
}

TEST(StreamBucketsTest, AFieldWithoutALengthIsRefusedAtOnceIfItIsKnown) {
  const Dataset stream = declared(3).filter([](const Sample&) { return true; });
  for (const Dataset& dataset : {stream, declared(3)}) {
    EXPECT_THAT([&] { (void)dataset.bucket_by_length({2}, {1, 1}); },
                ThrowsMessage<ConfigError>(HasSubstr("name the field")));
    EXPECT_THAT([&] { (void)dataset.bucket_by_length({2}, {1, 1}, {.field = "id"}); },
                ThrowsMessage<ConfigError>(HasSubstr("has no length")));
  }
}

TEST(StreamBucketsTest, TheOrderDependsOnTheLengthAndTheTail) {
  const auto order_of = [](const BucketOptions& options) {
    return stream_of({1}).bucket_by_length({2}, {1, 1}, options).digests().order;
  };
  const auto one = [](const Sample&) { return std::int64_t{1}; };
  EXPECT_NE(order_of({}), order_of({.length = one}));
  EXPECT_NE(order_of({}), order_of({.tail = Tail::drop}));
  EXPECT_EQ(order_of({}), order_of({.tail = Tail::short_}));
}

TEST(StreamBucketsTest, WrongOptionsAreRefused) {
  const Dataset stream = stream_of({1});
  const auto buckets = [&](const BucketOptions& options) {
    return [&stream, options] {
      Loader loader(stream.bucket_by_length({2}, {1, 1}, options), {.threads = 0});
    };
  };
  EXPECT_THAT(buckets({.pad_to_boundary = true}),
              ThrowsMessage<ConfigError>(HasSubstr("cannot be padded to the boundary")));
  EXPECT_THAT(buckets({.tail = Tail::drop, .window = 3}),
              ThrowsMessage<ConfigError>(HasSubstr("a window delivers short steps")));
  EXPECT_THAT(buckets({.tail = Tail::even}),
              ThrowsMessage<ConfigError>(HasSubstr("needs the number of samples")));
  EXPECT_THAT([] { (void)Dataset::range(3).bucket_by_length({2}, {1, 1}, {.window = 3}); },
              ThrowsMessage<ConfigError>(HasSubstr("window is for streams")));
}

TEST(BucketsTest, IndexedDataCanBePaddedToTheBoundary) {
  const Dataset documents = Dataset::from_ragged(Tensor::of(std::vector<std::int64_t>(7)),
                                                 Tensor::of(std::vector<std::int64_t>{0, 1, 3, 7}));
  Loader loader(documents.bucket_by_length({4}, {2, 1}, {.pad_to_boundary = true}), {.threads = 0});
  EXPECT_EQ((*loader.next())[""].shape(), (Shape{2, 3}));
  EXPECT_EQ((*loader.next())[""].shape(), (Shape{1, 4})) << "the last bucket has no boundary";
}

/// Adds the width of the batch to each value.
Sample add_width(const Sample& batch) {
  const Tensor& tokens = batch["tokens"];
  std::vector<std::int64_t> values(tokens.values<std::int64_t>().begin(),
                                   tokens.values<std::int64_t>().end());
  for (std::int64_t& value : values) value += 1000 * tokens.shape().back();
  return Sample::dict(
      {{"id", batch["id"]},
       {"tokens", Tensor::of(std::span<const std::int64_t>(values), tokens.shape())}});
}

TEST(PaddedMapTest, AFunctionOfWholeBatchesReceivesTheGlobalBatchPadded) {
  for (const std::uint32_t shares : {1U, 2U}) {
    LoaderOptions options;
    options.shares = Shares{shares, 0, shares};
    Loader loader(declared(6).padded_batch(3, {.padding = {{.value = -1}}}).map(add_width),
                  options);
    for (std::int64_t step = 0; step < 2; ++step) {
      std::int64_t next = 3 * step;
      const auto batches = loader.next_step();
      for (const Batch& batch : *batches) {
        const std::int64_t width = 3 * step + 2;
        EXPECT_EQ(batch["tokens"].shape(), (Shape{static_cast<std::int64_t>(batch.rows()), width}));
        for (std::size_t row = 0; row < batch.rows(); ++row, ++next)
          for (std::int64_t at = 0; at < width; ++at)
            EXPECT_EQ(batch.row(row)["tokens"].values<std::int64_t>()[static_cast<std::size_t>(at)],
                      1000 * width + (at < next ? next : -1));
      }
      EXPECT_EQ(next, 3 * step + 3);
    }
  }
}

TEST(PaddedMapTest, RowsWithoutASampleAreZeros) {
  Loader loader(declared(4).padded_batch(3, {.tail = Tail::pad}).map(add_width), {.threads = 0});
  (void)loader.next();
  const auto batch = loader.next();
  ASSERT_FALSE(batch->is_ragged("tokens"));
  EXPECT_EQ((*batch)["tokens"].shape(), (Shape{3, 3}));
  EXPECT_THAT((*batch)["tokens"].values<std::int64_t>(),
              ElementsAre(3003, 3003, 3003, 0, 0, 0, 0, 0, 0));
}

TEST(PaddedMapTest, EmptyRowsAreATensorWithoutValues) {
  const auto same = [](const Sample& batch) { return batch; };
  Loader loader(declared(1).padded_batch(1).map(same), {.threads = 0});
  EXPECT_EQ((*loader.next())["tokens"].shape(), (Shape{1, 0}));
}

TEST(PaddedMapTest, FunctionsCanFollowEachOther) {
  Loader loader(declared(3).padded_batch(3).map(add_width).map(add_width), {.threads = 0});
  const auto batch = loader.next();
  EXPECT_THAT((*batch)["tokens"].values<std::int64_t>(),
              ElementsAre(4000, 4000, 4001, 4000, 4002, 4002));
}

TEST(PaddedMapTest, WithoutPaddingThereIsNoTensorForIt) {
  EXPECT_THAT([] { (void)declared(3).batch(3).map(add_width); },
              ThrowsMessage<ConfigError>(HasSubstr("padded_batch")));
  const Padding only_id{.only_named = true, .fields = {{"id", {}}}};
  EXPECT_THAT([&] { (void)declared(3).padded_batch(3, {.padding = only_id}); },
              ThrowsMessage<ConfigError>(HasSubstr("has no length to pad")));
}

TEST(PaddedMapTest, ARowThatIsTooLongIsNamed) {
  Loader loader(declared(6).padded_batch(6, {.padding = {{.length = 4}}}).map(add_width),
                {.threads = 0});
  EXPECT_THAT([&] { (void)loader.next(); }, ThrowsMessage<SampleError>(HasSubstr("sample 5")));
}

}  // namespace
}  // namespace penstock
