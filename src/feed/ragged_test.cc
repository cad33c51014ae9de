// Batches of rows that differ in size: declared, learned from the data, and padded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/state.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// {"id": x, "tokens": x % 5 + 1 times x, or `equal` times if x is below `equal_below`}.
Dataset documents(std::int64_t samples, bool declared, std::int64_t equal_below = 0) {
  MapOptions options;
  if (declared)
    options.spec = ElementSpec::dict({{"id", Dtype::i64, {}}, {"tokens", Dtype::i64, {kUnknown}}});
  return Dataset::range(samples).map(
      [equal_below](const Sample& sample) {
        const auto x = sample.tensor().item<std::int64_t>();
        const auto length = static_cast<std::size_t>(x < equal_below ? 3 : x % 5 + 1);
        return Sample::dict({{"id", sample.tensor()},
                             {"tokens", Tensor::of(std::vector<std::int64_t>(length, x))}});
      },
      options);
}

std::vector<std::int64_t> tokens_of(const Batch& batch, std::size_t row) {
  const Sample sample = batch.row(row);
  const auto values = sample["tokens"].values<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST(RaggedTest, RowsOfDifferentSizesAreValuesAndOffsets) {
  for (const bool declared : {true, false}) {
    Loader loader(documents(10, declared).batch(4), {.threads = 2});
    std::int64_t next = 0;
    for (const Batch& batch : loader) {
      ASSERT_TRUE(batch.is_ragged("tokens"));
      EXPECT_FALSE(batch.is_ragged("id"));
      const Ragged ragged = batch.ragged("tokens");
      EXPECT_EQ(ragged.values.shape().front(), ragged.offsets.back());
      for (std::size_t row = 0; row < batch.rows(); ++row, ++next) {
        EXPECT_EQ(ragged.lengths[row], next % 5 + 1);
        EXPECT_EQ(tokens_of(batch, row),
                  std::vector<std::int64_t>(static_cast<std::size_t>(next % 5 + 1), next));
      }
      EXPECT_THAT([&] { (void)batch["tokens"]; },
                  ThrowsMessage<ConfigError>(HasSubstr("padded_batch")));
    }
    EXPECT_EQ(next, 10);
  }
}

TEST(RaggedTest, ADeclaredFieldIsRaggedEvenIfSizesAreEqual) {
  Loader loader(documents(4, true, 4).batch(4), {.threads = 0});
  EXPECT_TRUE(loader.next()->is_ragged("tokens"));
}

TEST(RaggedTest, AnUndeclaredFieldIsATensorUntilASizeDiffersAndRaggedFromThereOn) {
  // Samples 0 to 7 have length 3, sample 8 has length 4, the others of the second half too.
  const Dataset dataset = Dataset::range(16).map([](const Sample& sample) {
    const auto x = sample.tensor().item<std::int64_t>();
    return Sample(Tensor::of(std::vector<float>(x == 8 ? 4U : 3U)));
  });
  for (const unsigned threads : {0U, 3U}) {
    Loader loader(dataset.batch(4), {.threads = threads});
    std::vector<bool> ragged;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const Batch& batch : loader) {
        ragged.push_back(batch.is_ragged(""));
        EXPECT_EQ(batch.row(3).tensor().shape(), Shape{3});
        EXPECT_THAT(batch.lengths()[0], batch.step() == 2 ? 4 : 3);
      }
    EXPECT_THAT(ragged, ElementsAre(false, false, true, true, true, true, true, true));
  }
}

TEST(RaggedTest, OneSideOfAConcatenateMayDeclareTheSizesThatTheOtherLeavesToBeLearned) {
  for (const bool first_declared : {true, false}) {
    const Dataset batches =
        documents(6, first_declared).batch(4).concatenate(documents(6, !first_declared).batch(4));
    Loader loader(batches, {.threads = 2});
    std::vector<std::int64_t> lengths;
    for (const Batch& batch : loader)
      for (const std::int64_t length : batch.lengths("tokens")) lengths.push_back(length);
    EXPECT_THAT(lengths, ElementsAre(1, 2, 3, 4, 5, 1, 1, 2, 3, 4, 5, 1));
  }
}

TEST(RaggedTest, TheSizesOfMaskedRowsDoNotCount) {
  const Dataset dataset =
      documents(4, false, 2)  // lengths 3, 3, 3, 4
          .filter([](const Sample& x) { return x["id"].item<std::int64_t>() != 3; },
                  {.mask = true});
  Loader loader(dataset.batch(4), {.threads = 0});
  const Batch batch = *loader.next();
  EXPECT_FALSE(batch.is_ragged("tokens"));
  EXPECT_THAT(batch["tokens"].shape(), ElementsAre(4, 3));
}

TEST(RaggedTest, OtherDtypesAndRanksAreErrors) {
  const auto run = [](const Tensor& odd) {
    Loader loader(Dataset::range(4)
                      .map([odd](const Sample& x) -> Sample {
                        return x.tensor().item<std::int64_t>() == 2
                                   ? odd
                                   : Tensor::of(std::vector<float>{1, 2});
                      })
                      .batch(4));
    loader.next();
  };
  EXPECT_THAT([&] { run(Tensor::of(std::vector<double>{1})); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("f64[1]"), HasSubstr("f32[2]"))));
  EXPECT_THAT([&] { run(Tensor::scalar(1.0F)); }, ThrowsMessage<SampleError>(HasSubstr("f32[]")));
}

TEST(RaggedTest, SharesAndResumesDeliverTheSameRows) {
  const Dataset dataset = documents(23, false).shuffle({.seed = 5}).batch(6);
  const auto rows_of = [&](std::uint32_t shares, std::uint64_t saved_after) {
    std::vector<std::vector<std::int64_t>> rows;
    std::string state;
    for (int part = 0; part < 2; ++part) {
      LoaderOptions options{.threads = 2};
      options.shares = Shares{shares, 0, shares};
      Loader loader(dataset, options);
      if (!state.empty()) loader.restore(State::parse(state));
      std::uint64_t steps = 0;
      while (const auto step = loader.next_step()) {
        for (const Batch& batch : *step)
          for (std::size_t row = 0; row < batch.rows(); ++row)
            rows.push_back(tokens_of(batch, row));
        if (part == 0 && ++steps == saved_after) break;
      }
      if (part == 0 && saved_after == 0) return rows;
      state = loader.state().to_json();
    }
    return rows;
  };
  const auto all = rows_of(1, 0);
  EXPECT_EQ(all.size(), 23U);
  EXPECT_EQ(rows_of(3, 0), all);
  EXPECT_EQ(rows_of(2, 1), all);
  EXPECT_EQ(rows_of(4, 3), all);
}

TEST(RaggedTest, SkippedRowsAndPaddingRowsAreEmpty) {
  const Dataset dataset = documents(7, false).map([](const Sample& sample) {
    if (sample["id"].item<std::int64_t>() == 1) throw std::runtime_error("bad");
    return sample;
  });
  Loader loader(dataset.batch(4, {.tail = Tail::pad}), {.threads = 2, .on_error = OnError::skip});
  EXPECT_THAT(loader.next()->lengths("tokens"), ElementsAre(1, 0, 3, 4));
  EXPECT_THAT(loader.next()->lengths("tokens"), ElementsAre(5, 1, 2, 0));
}

TEST(RaggedTest, AFunctionOfWholeBatchesMayReturnAnOpenSize) {
  const Dataset doubled = Dataset::range(6).batch(4).map(
      [](const Sample& batch) -> Sample {
        const auto values = batch.tensor().values<std::int64_t>();
        std::vector<std::int64_t> pairs;
        for (const std::int64_t value : values) pairs.insert(pairs.end(), {value, -value});
        return Tensor::of(std::span<const std::int64_t>(pairs),
                          {static_cast<std::int64_t>(values.size()), 2});
      },
      {.spec = ElementSpec::single(Dtype::i64, {kUnknown})});
  Loader loader(doubled, {.threads = 2});
  EXPECT_THAT((*loader.next())[""].shape(), ElementsAre(4, 2));
  const Batch last = *loader.next();
  EXPECT_THAT(last.values<std::int64_t>(), ElementsAre(4, -4, 5, -5));
  EXPECT_THAT(last.ragged("").values.values<std::int64_t>(), ElementsAre(4, -4, 5, -5));
}

TEST(PaddedBatchTest, RowsArePaddedToTheLongestOfTheBatch) {
  for (const bool declared : {true, false}) {
    PaddedBatchOptions options;
    options.padding.all = {.value = -1, .multiple_of = 4};
    Loader loader(documents(8, declared).padded_batch(4, options), {.threads = 2});
    const Batch first = *loader.next();
    EXPECT_FALSE(first.is_ragged("tokens"));
    EXPECT_THAT(first["tokens"].shape(), ElementsAre(4, 4));
    EXPECT_THAT(first.values<std::int64_t>("tokens"),
                ElementsAre(0, -1, -1, -1, 1, 1, -1, -1, 2, 2, 2, -1, 3, 3, 3, 3));
    EXPECT_THAT(first.lengths("tokens"), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT((*loader.next())["tokens"].shape(), ElementsAre(4, 8)) << "lengths 5, 1, 2, 3";
    EXPECT_THAT(first.values<std::int64_t>("id"), ElementsAre(0, 1, 2, 3)) << "scalars stay";
  }
}

TEST(PaddedBatchTest, OnlyNamedFieldsArePaddedIfSome) {
  PaddedBatchOptions options;
  options.padding.only_named = true;
  options.padding.fields = {{"a", {.value = 9, .side = PadSide::left, .length = 3}}};
  const Dataset dataset = Dataset::range(2).map([](const Sample& x) {
    const std::vector<std::int64_t> values(
        static_cast<std::size_t>(x.tensor().item<std::int64_t>() + 1), 5);
    return Sample::dict({{"a", Tensor::of(values)}, {"b", Tensor::of(values)}});
  });
  Loader loader(dataset.padded_batch(2, options), {.threads = 0});
  const Batch batch = *loader.next();
  EXPECT_THAT(batch.values<std::int64_t>("a"), ElementsAre(9, 9, 5, 9, 5, 5));
  EXPECT_TRUE(batch.is_ragged("b"));
}

TEST(PaddedBatchTest, ARowLongerThanTheLengthFailsItsStepAndIsNamed) {
  PaddedBatchOptions options;
  options.padding.all.length = 4;
  Loader loader(documents(8, true).padded_batch(3, options), {.threads = 2});
  loader.next();
  EXPECT_THAT([&] { loader.next(); }, ThrowsMessage<SampleError>(AllOf(
                                          HasSubstr("length 5, more than the 4"),
                                          HasSubstr("row 1 of the step"), HasSubstr("truncate"))));
}

TEST(PaddedBatchTest, WrongPaddingIsRefusedWhenItIsDefined) {
  const auto with = [](FieldPadding rule, const char* path = nullptr) {
    return [rule, path] {
      PaddedBatchOptions options;
      if (path != nullptr) {
        options.padding.fields = {{path, rule}};
      } else {
        options.padding.all = rule;
      }
      (void)documents(8, true).padded_batch(3, options);
    };
  };
  EXPECT_THAT(with({.value = 0.5}), ThrowsMessage<ConfigError>(HasSubstr("0.5 cannot be a value")));
  EXPECT_THAT(with({.multiple_of = 0}), ThrowsMessage<ConfigError>(HasSubstr("multiple_of")));
  EXPECT_THAT(with({.length = -2}), ThrowsMessage<ConfigError>(HasSubstr("length")));
  EXPECT_THAT(with({.length = 1LL << 61}), ThrowsMessage<ConfigError>(HasSubstr("too long")));
  EXPECT_THAT(with({.multiple_of = INT64_MAX}), ThrowsMessage<ConfigError>(HasSubstr("too long")));
  EXPECT_THAT(with({}, "text"), ThrowsMessage<ConfigError>(HasSubstr("no field \"text\"")));
  EXPECT_THAT(with({}, "id"), ThrowsMessage<ConfigError>(HasSubstr("no length to pad")));
  EXPECT_THAT([] { (void)Dataset::range(3).padded_batch(0); },
              ThrowsMessage<ConfigError>(HasSubstr("padded_batch: size must be positive")));
}

TEST(PaddedBatchTest, AStreamPadsItsStepsToo) {
  PaddedBatchOptions options;
  options.tail = Tail::pad;
  const Dataset stream =
      documents(5, false).filter([](const Sample& x) { return x["id"].item<std::int64_t>() != 2; });
  Loader loader(stream.padded_batch(3, options), {.threads = 2});
  EXPECT_THAT(loader.next()->lengths("tokens"), ElementsAre(1, 2, 4));
  const Batch last = *loader.next();
  EXPECT_THAT(last["tokens"].shape(), ElementsAre(3, 5));
  EXPECT_THAT(last.lengths("tokens"), ElementsAre(5, 0, 0));
}

TEST(PaddedBatchTest, IndexedBatchesArePaddedAlsoNextToAStream) {
  PaddedBatchOptions options;
  options.padding.all.multiple_of = 8;
  const Dataset stream = documents(2, true).filter([](const Sample&) { return true; });
  const Dataset both = documents(3, true).padded_batch(3, options).concatenate(stream.batch(2));
  Loader loader(both, {.threads = 2});
  EXPECT_THAT((*loader.next())["tokens"].shape(), ElementsAre(3, 8));
  EXPECT_TRUE(loader.next()->is_ragged("tokens"));
}

}  // namespace
}  // namespace penstock
