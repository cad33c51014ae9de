#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "penstock/plan.h"
#include "plan/plan_data.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::int64_t tripled(std::int64_t x) {
  return x * 3;
}
std::int64_t jittered(std::int64_t x, Rng& rng) {
  return x * 1000 + static_cast<std::int64_t>(rng.integer(1000));
}
Sample noted(const Sample& sample) {
  const auto x = sample.tensor().item<std::int64_t>();
  return Sample::dict({{"x", Tensor::scalar(x)},
                       {"note", Tensor::bytes(std::string(static_cast<std::size_t>(x % 5), '#'))}});
}
Sample reversed(const Sample& batch) {
  const auto rows = batch.tensor().values<std::int64_t>();
  return Tensor::of(std::vector<std::int64_t>(rows.rbegin(), rows.rend()));
}

Dataset array() {
  return Dataset::from_tensor_slices(
      Tensor::of(std::vector<std::int64_t>{7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5}), {.name = "digits"});
}
Dataset indexed() {
  const auto square = [](std::uint64_t i) { return static_cast<std::int64_t>(i * i); };
  return Dataset::from_index(9, square, {.name = "squares"});
}

std::vector<Dataset> one_of_every_verb() {
  const Dataset data = array();
  const Dataset batches = data.batch(4);
  const Seed drawn = Seed::random();
  return {Dataset::range(-5, 30, 3).batch(4),
          Dataset::from_tensors(Tensor::bytes("text"), {.name = "text"}).repeat(5).batch(2),
          indexed().batch(4),
          data.map(tripled, {.name = "tripled"}).batch(4),
          data.map(jittered, {.name = "jittered", .seed = 11}).repeat(2).batch(4),
          data.map(noted, {.name = "noted"}).batch(4),
          data.map(cast(Dtype::f32)).batch(4).map(cast(Dtype::f64)),
          batches.map(reversed, {.name = "reversed"}),
          data.batch(4, {.tail = Tail::drop}),
          data.batch(4, {.tail = Tail::even}),
          data.batch(4, {.tail = Tail::pad}),
          data.batch(4, {.tail = Tail::wrap}),
          Dataset::range(20).batch(10, {.tail = Tail::strict}),
          data.batch(4, {.tail = Tail::short_}).repeat(2),
          batches.take(2).rebatch(3),
          data.shuffle({.seed = 5}).batch(4),
          data.shuffle({.seed = 5, .window = 9, .blocks = 3}).batch(4),
          data.shuffle({.seed = drawn, .reshuffle_each_epoch = false})
              .batch(4)
              .shuffle({.seed = drawn}),
          data.take(7).skip(2).take(-1).batch(4).take(9).skip(1),
          data.skip(-1).batch(4),
          data.shard(3, 1).batch(2).shard(2, 0),
          data.concatenate(indexed()).batch(4).concatenate(Dataset::range(3).batch(2)),
          Dataset::zip({data, indexed(), Dataset::range(20).repeat()}).batch(4),
          Dataset::zip({data, data}, {.strict = true}).enumerate().batch(4),
          data.shuffle().cache({.bytes_max = 1'000'000}).batch(4).cache(),
          data.window(3, {.shift = 2, .stride = 2}).batch(2),
          data.window(4, {.drop_remainder = false}).map(truncate(2, "", Keep::last)).batch(2),
          data.prefetch({.steps = 2, .bytes = 100}).batch(4).with_options({.name = "all of it"})};
}

/// The identity of the rows and every byte of every field.
std::string content(const Batch& batch) {
  std::string text = fmt::format("{}:", batch.spec().text());
  for (const std::uint64_t id : batch.sample_id()) text += fmt::format(" {}", id);
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const Sample sample = batch.row(row);
    for (const Tensor& leaf : sample.leaves()) text += fmt::format("|{}", leaf.text());
  }
  return text;
}

void expect_same_blocks(const Plan& one, const Plan& other) {
  for (std::uint64_t pass = 0; pass < 2; ++pass) {
    for (std::uint64_t step = 0; step < one.steps().count(); ++step) {
      std::uint64_t rows = 0;
      for (const std::uint64_t share : one.cut(step)) rows += share;
      for (std::uint64_t first = 0; first < rows; ++first) {
        const BlockId block{pass, step, first, rows - first};
        EXPECT_EQ(content(run_block(one, block)), content(run_block(other, block)));
      }
    }
  }
}

TEST(SerializeTest, EveryVerbSurvivesSerialization) {
  for (const Dataset& dataset : one_of_every_verb()) {
    SCOPED_TRACE(dataset.describe());
    const Plan plan(dataset, {.shares = {5, 1, 2}, .tail = Tail::drop});
    const Plan back = Plan::parse(plan.serialize(), {dataset});
    EXPECT_EQ(back.digests(), plan.digests());
    EXPECT_EQ(back.explain(), plan.explain());
    EXPECT_EQ(back.serialize(), plan.serialize());
    expect_same_blocks(plan, back);
  }
}

bool always(const Sample&) {
  return true;
}
Sample document(const Sample& sample) {
  const auto x = sample.tensor().item<std::int64_t>();
  return Tensor::of(std::vector<std::int64_t>(static_cast<std::size_t>(x), x));
}

TEST(SerializeTest, BucketsAndPackedRowsOfStreamsSurviveSerialization) {
  const Dataset stream =
      array().map(document, {.name = "document"}).filter(always, {.name = "always"});
  const PackOptions pack{.how = PackHow::best_fit,
                         .separator = 3,
                         .too_long = LongDocument::drop,
                         .pad = 9,
                         .attention = PackAttention::row,
                         .with_cu_seqlens = true};
  for (const Dataset& dataset :
       {stream.pack(6, pack).batch(2),
        stream.bucket_by_length({3, 6}, {4, 3, 2}, {.tail = Tail::pad, .window = 7}),
        stream.batch_by_tokens(9, {.padding = std::nullopt})}) {
    SCOPED_TRACE(dataset.describe());
    const Plan plan(dataset);
    const Plan back = Plan::parse(plan.serialize(), {dataset});
    EXPECT_EQ(back.digests(), plan.digests());
    EXPECT_EQ(back.explain(), plan.explain());
    EXPECT_EQ(back.serialize(), plan.serialize());
  }
}

TEST(SerializeTest, AFunctionForTheLengthCannotBeSent) {
  const auto length = [](const Sample&) { return std::int64_t{1}; };
  const Dataset stream = array().filter([](std::int64_t) { return true; }, {.name = "all"});
  const Plan plan(stream.bucket_by_length({3}, {4, 3}, {.length = length}));
  EXPECT_THAT([&] { (void)plan.serialize(); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("name a field instead")));
}

TEST(SerializeTest, AnEndlessPlanStaysEndless) {
  const Dataset data = array().shuffle({.seed = 5}).repeat().batch(4).repeat();
  const Plan back = Plan::parse(Plan(data).serialize(), {data});
  EXPECT_TRUE(back.steps().is_endless());
  EXPECT_EQ(content(run_block(back, {0, 1'000'000, 0, 4})),
            content(run_block(Plan(data), {0, 1'000'000, 0, 4})));
}

TEST(SerializeTest, FunctionsAndArraysAreFoundByNameInAnyDataset) {
  const Dataset data =
      array().map(tripled, {.name = "tripled"}).map(jittered, {.name = "jittered"});
  const std::vector<Dataset> elsewhere = {
      Dataset::range(4).map(jittered, {.name = "jittered", .seed = 99}).batch(2),
      Dataset::zip({indexed(), array()}), Dataset::range(4).map(tripled, {.name = "tripled"})};
  const Plan plan(data.batch(4));
  const Plan back = Plan::parse(plan.serialize(), elsewhere);
  EXPECT_EQ(back.explain(), plan.explain());
  expect_same_blocks(plan, back);
}

TEST(SerializeTest, SharesTailAndDrawnSeedAreSerialized) {
  const Dataset data = array().shuffle({.seed = Seed::random()}).batch(4);
  const Plan plan(data, {.shares = {7, 2, 3}, .tail = Tail::drop});
  const Plan back = Plan::parse(plan.serialize(), {data});
  EXPECT_EQ(back.shares().total, 7U);
  EXPECT_EQ(back.shares().first, 2U);
  EXPECT_EQ(back.shares().count, 3U);
  EXPECT_EQ(back.steps(), Cardinality::of(2));
  EXPECT_EQ(back.data()->drawn_seed, plan.data()->drawn_seed);
}

/// The message of the ConfigError that parsing throws.
std::string refusal(const std::string& text, const std::vector<Dataset>& having = {}) {
  try {
    (void)Plan::parse(text, having);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "it was accepted";
}

TEST(SerializeTest, DataAndFunctionsWithoutANameCannotBeSerialized) {
  const auto refused = [](const Dataset& dataset) -> std::string {
    try {
      (void)Plan(dataset.batch(2)).serialize();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "it was accepted";
  };
  EXPECT_THAT(refused(Dataset::range(4).map(tripled)),
              AllOf(HasSubstr("map (i64) -> (i64)"), HasSubstr("by name"), HasSubstr(".name")));
  EXPECT_THAT(refused(Dataset::from_tensor_slices(Tensor::of(std::vector<float>{1, 2}))),
              AllOf(HasSubstr("from_tensor_slices"), HasSubstr("by name"), HasSubstr(".name")));
}

TEST(SerializeTest, AMissingNameIsReported) {
  const Dataset data = array().map(tripled, {.name = "tripled"}).batch(4);
  const std::string text = Plan(data).serialize();
  EXPECT_THAT(refusal(text), AllOf(HasSubstr("data \"digits\""), HasSubstr("was not found")));
  EXPECT_THAT(refusal(text, {array()}),
              AllOf(HasSubstr("function \"tripled\""), HasSubstr("was not found")));
}

TEST(SerializeTest, OtherDataUnderTheSameNameIsRejected) {
  const std::string text = Plan(array().batch(4)).serialize();
  const Dataset other = Dataset::from_tensor_slices(Tensor::of(std::vector<std::int64_t>{3, 1, 4}),
                                                    {.name = "digits"});
  EXPECT_THAT(refusal(text, {other}), HasSubstr("differs from the data of the plan"));
}

TEST(SerializeTest, AnotherFormatIsRejectedWithBothNumbers) {
  std::string text = Plan(Dataset::range(4).batch(2)).serialize();
  const std::string_view format = "\"format\":1";
  const std::size_t at = text.find(format);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, format.size(), "\"format\":2");
  EXPECT_THAT(refusal(text), AllOf(HasSubstr("format 2"), HasSubstr("knows 1")));
}

TEST(SerializeTest, OtherTextIsNotAPlan) {
  for (const char* const text :
       {"", "null", "[]", "3", "{}", "\"plan\"", "{\"penstock\":\"state\"}",
        "{\"penstock\":\"plan\"}", "{\"penstock\":\"plan\",\"format\":1}", "\xff\xfe", "plan"})
    EXPECT_NE(refusal(text), "it was accepted") << text;
}

Dataset small() {
  return array().shuffle({.seed = 5}).map(tripled, {.name = "tripled"}).batch(4).take(2);
}

TEST(SerializeTest, ATruncatedPlanIsRejected) {
  const Dataset data = small();
  const std::string text = Plan(data, {.tail = Tail::drop}).serialize();
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(refusal(text.substr(0, length), {data}), "it was accepted") << length;
}

TEST(SerializeTest, OtherJsonIsNotAPlan) {
  for (const char* const text : {R"({"penstock":3})", R"({"penstock":"plan","format":"1"})",
                                 R"({"penstock":"plan","format":null})"})
    EXPECT_THROW((void)Plan::parse(text), ConfigError) << text;
}

TEST(SerializeTest, ALongChainSurvivesSerialization) {
  Dataset data = Dataset::range(10);
  for (int i = 0; i < 200; ++i) data = data.take(-1);
  const Plan plan(data.batch(4));
  EXPECT_EQ(Plan::parse(plan.serialize()).explain(), plan.explain());
}

TEST(SerializeTest, AGarbledPlanIsRejectedOrEqual) {
  const Dataset data = Dataset::range(11).shuffle({.seed = 5}).batch(4);
  const Plan plan(data, {.shares = {4, 1, 2}, .tail = Tail::drop});
  const std::string text = plan.serialize();
  const auto expect_equal_or_refused = [&](const std::string& garbled) {
    try {
      EXPECT_EQ(Plan::parse(garbled).explain(), plan.explain()) << garbled;
    } catch (const ConfigError&) {
    }
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    expect_equal_or_refused(text.substr(0, at) + text.substr(at + 1));
    for (const char other : std::string_view("09x-.,:\"{}[] \\\x80"))
      expect_equal_or_refused(text.substr(0, at) + other + text.substr(at + 1));
  }
}

TEST(SerializeTest, ANameThatIsNotUtf8IsRejected) {
  const Dataset data = Dataset::range(4).with_options({.name = "\xff"}).batch(2);
  EXPECT_THROW((void)Plan(data).serialize(), ConfigError);
}

TEST(SerializeTest, EveryTailIsSerialized) {
  for (const Tail tail :
       {Tail::short_, Tail::drop, Tail::even, Tail::pad, Tail::wrap, Tail::strict}) {
    const Plan plan(Dataset::range(12).batch(4), {.tail = tail});
    EXPECT_EQ(Plan::parse(plan.serialize()).data()->options.tail, tail);
  }
}

}  // namespace
}  // namespace penstock
