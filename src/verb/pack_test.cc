#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <vector>

#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/op.h"
#include "penstock/plan.h"
#include "penstock/state.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Document i has lengths[i] tokens: 1000 * (i + 1) + 0, 1, 2, ...
Dataset documents(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> values;
  std::vector<std::int64_t> offsets{0};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t t = 0; t < lengths[i]; ++t)
      values.push_back(static_cast<std::int32_t>(1000 * (static_cast<std::int64_t>(i) + 1) + t));
    offsets.push_back(static_cast<std::int64_t>(values.size()));
  }
  return Dataset::from_ragged(Tensor::of(values), Tensor::of(offsets), {.name = "documents"});
}

struct Row {
  std::vector<std::int64_t> tokens, labels, positions, document;
  bool operator==(const Row&) const = default;
};

template <typename T>
std::vector<std::int64_t> numbers(const Sample& row, const char* path) {
  const Tensor tensor = row[path];
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

std::vector<Row> rows_of(Loader& loader, std::uint64_t steps_max = UINT64_MAX) {
  std::vector<Row> rows;
  for (std::uint64_t step = 0; step < steps_max; ++step) {
    const auto batches = loader.next_step();
    if (!batches) break;
    for (const Batch& batch : *batches)
      for (std::size_t i = 0; i < batch.rows(); ++i) {
        const Sample row = batch.row(i);
        rows.push_back({numbers<std::int32_t>(row, "tokens"), numbers<std::int64_t>(row, "labels"),
                        numbers<std::int32_t>(row, "positions"),
                        numbers<std::int32_t>(row, "document")});
      }
  }
  return rows;
}
std::vector<Row> rows_of(const Dataset& dataset) {
  Loader loader(dataset.batch(3), {.threads = 2});
  return rows_of(loader);
}

TEST(PackTest, AStreamIsCutWhereRowsEndAndLabelsContinue) {
  const auto rows = rows_of(documents({3, 0, 4}).pack(4, {.separator = 9}));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_THAT(rows[0].tokens, ElementsAre(1000, 1001, 1002, 9));
  EXPECT_THAT(rows[0].labels, ElementsAre(1001, 1002, 9, -100));
  EXPECT_THAT(rows[1].tokens, ElementsAre(3000, 3001, 3002, 3003));
  EXPECT_THAT(rows[1].labels, ElementsAre(3001, 3002, 3003, 9))
      << "the separator is in the next row";
  EXPECT_THAT(rows[2].tokens, ElementsAre(9, 0, 0, 0));
  EXPECT_THAT(rows[2].labels, ElementsAre(-100, -100, -100, -100));
  EXPECT_THAT(rows[2].document, ElementsAre(0, -1, -1, -1));
}

TEST(PackTest, TheLabelAtTheEndOfARowIsTheNextTokenOfTheDocument) {
  const auto rows = rows_of(documents({6}).pack(4));
  EXPECT_THAT(rows[0].labels, ElementsAre(1001, 1002, 1003, 1004));
  EXPECT_THAT(rows[1].labels, ElementsAre(1005, -100, -100, -100));
}

TEST(PackTest, OtherDocumentsShareARowInEveryEpoch) {
  Loader loader(documents({3, 3, 3, 3, 3, 3, 3, 3}).shuffle({.seed = 3}).pack(6).batch(4),
                {.threads = 0});
  const auto sorted_tokens = [&] {
    std::vector<std::vector<std::int64_t>> tokens;
    for (const Row& row : rows_of(loader)) tokens.push_back(row.tokens);
    std::ranges::sort(tokens);
    return tokens;
  };
  const auto first = sorted_tokens();
  EXPECT_NE(sorted_tokens(), first);
}

TEST(PackTest, BestFitKeepsDocumentsWholeAndNumbersThem) {
  const auto rows = rows_of(documents({2, 5, 3}).pack(8, {.how = PackHow::best_fit, .pad = 7}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].tokens, ElementsAre(2000, 2001, 2002, 2003, 2004, 3000, 3001, 3002));
  EXPECT_THAT(rows[0].positions, ElementsAre(0, 1, 2, 3, 4, 0, 1, 2));
  EXPECT_THAT(rows[0].document, ElementsAre(0, 0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(rows[0].labels, ElementsAre(2001, 2002, 2003, 2004, -100, 3001, 3002, -100));
  EXPECT_THAT(rows[1].tokens, ElementsAre(1000, 1001, 7, 7, 7, 7, 7, 7));
}

TEST(PackTest, AMaskHidesLabels) {
  const Dataset masked = documents({3}).map(
      [](const Sample& tokens) {
        return Sample::dict(
            {{"mask", Tensor::of(std::vector<std::uint8_t>{1, 0, 1})}, {"text", tokens}});
      },
      {.spec =
           ElementSpec::dict({{"mask", Dtype::u8, {kUnknown}}, {"text", Dtype::i32, {kUnknown}}})});
  const auto rows = rows_of(masked.pack(4, {.field = "text", .mask = "mask"}));
  EXPECT_THAT(rows[0].labels, ElementsAre(-100, 1002, -100, -100));
}

TEST(PackTest, TheEndsOfDocumentsAreAFieldIfWanted) {
  Loader loader(
      documents({2, 5, 3}).pack(8, {.how = PackHow::best_fit, .with_cu_seqlens = true}).batch(2),
      {.threads = 0});
  const Batch batch = *loader.next();
  EXPECT_THAT(batch.ragged("cu_seqlens").values.values<std::int32_t>(), ElementsAre(0, 5, 8, 0, 2));
}

TEST(PackTest, EveryTokenComesOnceInEveryEpochWhateverTheShuffleAndTheShares) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 10'000; ++i) lengths.push_back(i * 7919 % 23);
  for (const PackHow how : {PackHow::stream, PackHow::best_fit}) {
    const Dataset packed = documents(lengths).shuffle({.seed = 3}).pack(16, {.how = how}).batch(64);
    std::vector<Row> first_epoch;
    for (const std::uint32_t shares : {1U, 3U}) {
      LoaderOptions options{.threads = 2};
      options.shares = Shares{shares, 0, shares};
      Loader loader(packed, options);
      for (int epoch = 0; epoch < 2; ++epoch) {
        const auto rows = rows_of(loader);
        std::map<std::int64_t, int> seen;
        for (const Row& row : rows)
          for (std::size_t i = 0; i < row.tokens.size(); ++i)
            if (row.document[i] >= 0) ++seen[row.tokens[i]];
        std::int64_t tokens = 0;
        for (const std::int64_t length : lengths) tokens += length;
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), tokens);
        for (const auto& [token, times] : seen) ASSERT_EQ(times, 1) << token;
        if (epoch == 0 && shares == 1) first_epoch = rows;
        EXPECT_EQ(rows == first_epoch, epoch == 0) << "another epoch has another order";
      }
    }
  }
}

TEST(PackTest, ResumingAnywhereContinuesWithTheSameRows) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 500; ++i) lengths.push_back(i * 31 % 17);
  const auto dataset = [&](std::int64_t batch) {
    return documents(lengths)
        .shuffle({.seed = 1})
        .pack(32, {.how = PackHow::best_fit})
        .batch(batch);
  };
  Loader whole(dataset(4), {.threads = 2});
  const auto all = rows_of(whole);
  for (const std::uint64_t steps : {1U, 7U, 20U}) {
    Loader before(dataset(4), {.threads = 2});
    auto rows = rows_of(before, steps);
    Loader after(dataset(5), {.threads = 1});
    after.restore(State::parse(before.state().to_json()));
    for (Row& row : rows_of(after)) rows.push_back(std::move(row));
    EXPECT_EQ(rows, all);
  }
}

TEST(PackTest, ARowAsOneDocumentHasPositionsAndLabelsThroughTheRow) {
  const auto rows =
      rows_of(documents({3, 2, 4}).pack(6, {.separator = 9, .attention = PackAttention::row}));
  EXPECT_THAT(rows[0].tokens, ElementsAre(1000, 1001, 1002, 9, 2000, 2001));
  EXPECT_THAT(rows[0].labels, ElementsAre(1001, 1002, 9, 2000, 2001, 9));
  EXPECT_THAT(rows[0].positions, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(rows[0].document, ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(rows[1].labels, ElementsAre(3000, 3001, 3002, 3003, 9, -100))
      << "what follows is in another row";
}

/// The same documents as a stream.
Dataset streamed(const Dataset& indexed) {
  return indexed.filter([](const Sample&) { return true; });
}

TEST(PackTest, AStreamIsPackedLikeIndexedData) {
  std::vector<std::int64_t> lengths(300);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = static_cast<std::int64_t>(i * i % 11);
  for (const PackHow how : {PackHow::stream, PackHow::best_fit})
    for (const LongDocument too_long :
         {LongDocument::split, LongDocument::cut, LongDocument::drop}) {
      const PackOptions options{.how = how, .separator = 5, .too_long = too_long};
      EXPECT_EQ(rows_of(streamed(documents(lengths)).pack(8, options)),
                rows_of(documents(lengths).pack(8, options)));
    }
}

TEST(PackTest, ABlockOfAStreamEndsWhenItFills256Rows) {
  // 64 documents of 8 tokens at a time fill 128 rows of 4.
  const std::vector<std::int64_t> lengths(193, 8);
  const auto rows = rows_of(streamed(documents(lengths)).pack(3));
  const std::size_t block = (128 * 8 + 2) / 3;
  EXPECT_EQ(rows.size(), block + (65 * 8 + 2) / 3);
  EXPECT_THAT(rows[block - 1].tokens, ElementsAre(128007, 0, 0));
}

TEST(PackTest, BadDocumentsOfAStreamAreNamedOrSkipped) {
  const Dataset dataset = streamed(documents({2, 3, 2})).map([](const Sample& sample) {
    const auto values = sample.tensor().values<std::int32_t>();
    if (values.size() == 2) return sample;
    return Sample(Tensor::of(std::vector<std::int32_t>{1, -7}));
  });
  EXPECT_THAT([&] { (void)rows_of(dataset.pack(4)); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("token 1 is -7"), HasSubstr("pack(4"))));
  Loader loader(dataset.pack(4).batch(2), {.threads = 1, .on_error = OnError::skip});
  const auto rows = rows_of(loader);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows[0].tokens, ElementsAre(1000, 1001, 3000, 3001));
  EXPECT_EQ(loader.ledger().entries().size(), 1U);
  const auto refuse =
      dataset.pack(2, {.how = PackHow::best_fit, .separator = 0, .too_long = LongDocument::refuse});
  EXPECT_THAT([&] { (void)rows_of(refuse); },
              ThrowsMessage<SampleError>(HasSubstr("a document has 2 tokens, a row has 2")));
}

TEST(PackTest, BlocksHave4096DocumentsAndTheirLastRowMayBeShort) {
  const auto rows = [](std::size_t count) {
    return documents(std::vector<std::int64_t>(count, 1)).pack(3).resolve().cardinality().count();
  };
  EXPECT_EQ(rows(4096), 1366U);
  EXPECT_EQ(rows(4097), 1367U) << "the row of the next block is one of its own";
}

TEST(PackTest, ThePlanNamesThePadding) {
  const Plan plan =
      Plan(documents({2, 5, 3}).pack(8, {.how = PackHow::best_fit}).batch(2).resolve());
  EXPECT_THAT(plan.explain(), HasSubstr("10 tokens in 2 rows, 37.50 % padding"));
}

TEST(PackTest, ASerializedPlanHasTheSameRows) {
  const Dataset dataset = documents({2, 5, 3})
                              .shuffle({.seed = 4})
                              .pack(8, {.how = PackHow::best_fit, .separator = 1})
                              .batch(2)
                              .resolve();
  const Plan plan(dataset);
  EXPECT_EQ(Plan::parse(plan.serialize(), {dataset}).explain(), plan.explain());
}

TEST(PackTest, TokensOfEveryDtypeAreCopied) {
  for (const Dtype dtype : {Dtype::u8, Dtype::u16, Dtype::u32, Dtype::u64, Dtype::i8, Dtype::i16,
                            Dtype::i32, Dtype::i64}) {
    const Dataset small = Dataset::from_ragged(Tensor::of(std::vector<std::int64_t>{5, 6, 7}),
                                               Tensor::of(std::vector<std::int64_t>{0, 3}))
                              .map(cast(dtype));
    EXPECT_THAT(rows_of(small.pack(4))[0].tokens, ElementsAre(5, 6, 7, 0));
  }
}

TEST(PackTest, WrongInputIsRefused) {
  const auto refusal = [](const Dataset& dataset, const PackOptions& options = {}) {
    return [dataset, options] { Loader(dataset.pack(4, options).batch(1)).next(); };
  };
  EXPECT_THAT([] { (void)documents({1}).pack(0); },
              ThrowsMessage<ConfigError>(HasSubstr("length must be from 1")));
  EXPECT_THAT(refusal(documents({1}), {.pad = -1}),
              ThrowsMessage<ConfigError>(HasSubstr("-1 is not a token")));
  EXPECT_THAT(refusal(Dataset::range(3)), ThrowsMessage<ConfigError>(HasSubstr("is i64[]")));
  EXPECT_THAT(refusal(documents({1}), {.field = "text"}),
              ThrowsMessage<ConfigError>(HasSubstr("no field \"text\"")));
  EXPECT_THAT(refusal(documents({9}), {.how = PackHow::best_fit, .too_long = LongDocument::refuse}),
              ThrowsMessage<ConfigError>(HasSubstr("document 0 has 9 tokens, a row has 4")));
  EXPECT_THAT(refusal(documents({1}).repeat()), ThrowsMessage<ConfigError>(HasSubstr("endless")));
  EXPECT_THAT(refusal(documents({3, 3}).shuffle().take(1)),
              ThrowsMessage<ConfigError>(HasSubstr("last step before pack")));
}

TEST(PackTest, AMaskedDocumentOrAMissingFieldIsAFailure) {
  const Dataset masked = documents({3, 2}).filter(
      [](const Sample& x) { return x.tensor().shape()[0] == 3; }, {.mask = true});
  EXPECT_THAT([&] { Loader(masked.pack(8).batch(1), {.threads = 0}).next(); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("masks this sample"),
                                               HasSubstr("sample 1"), HasSubstr("select()"))));
  const Dataset without =
      documents({3}).map([](const Sample& x) { return Sample::dict({{"text", x}}); });
  EXPECT_THAT(
      [&] {
        Loader(without.pack(8, {.field = "text", .mask = "m"}).batch(1), {.threads = 0}).next();
      },
      ThrowsMessage<SampleError>(HasSubstr("\"m\"")));
}

TEST(PackTest, ADocumentThatFailsOrChangesIsNamed) {
  const MapOptions open{.spec = ElementSpec::single(Dtype::i64, {kUnknown})};
  int calls = 0;
  const Dataset changing = Dataset::range(2).map(
      [&calls](const Sample&) {
        return Sample(Tensor::of(std::vector<std::int64_t>(++calls > 2 ? 3U : 2U)));
      },
      open);
  EXPECT_THAT([&] { Loader(changing.pack(4).batch(1), {.threads = 0}).next(); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("it had 2 tokens"), HasSubstr("pack"))));
  const Dataset negative = Dataset::range(2).map(
      [](const Sample& x) {
        return Sample(Tensor::of(std::vector<std::int64_t>{1, -x.tensor().item<std::int64_t>()}));
      },
      open);
  EXPECT_THAT([&] { Loader(negative.pack(4).batch(1), {.threads = 0}).next(); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("token 1 is -1"), HasSubstr("sample 1"))));
}

}  // namespace
}  // namespace penstock
