#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "penstock/arrow.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "source/arrow_tables_for_tests.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using testing::ArrowPart;
using testing::ArrowStream;
using testing::bits_of;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kNoBuffer;
using testing::numbers;
using testing::table;
using testing::texts;
using ::testing::ThrowsMessage;

Dataset rows_of(std::vector<ArrowPart> batches, const ArrowOptions& options = {}) {
  ArrowStream source{std::move(batches)};
  ArrowArrayStream stream = source.stream();
  return from_arrow(stream, options);
}

template <typename T>
std::vector<T> values(const Dataset& dataset, std::uint64_t row, const char* path) {
  const Sample sample = dataset.sample(row);
  const auto found = sample[path].values<T>();
  return {found.begin(), found.end()};
}

ArrowPart lists(std::string name, const std::vector<std::int32_t>& offsets, ArrowPart items,
                std::string valid = kNoBuffer) {
  ArrowPart part{"+l",
                 std::move(name),
                 static_cast<std::int64_t>(offsets.size()) - 1,
                 {std::move(valid), bytes_of(offsets)}};
  part.children.push_back(std::move(items));
  return part;
}

TEST(ArrowTest, NumbersBooleansAndTextsOfSeveralBatches) {
  const auto batch = [](std::int64_t first) {
    return table({numbers<std::int64_t>("id", "l", {first, first + 1, first + 2}),
                  {"b", "odd", 3, {kNoBuffer, bits_of({0, 1, 0})}},
                  numbers<double>("x", "g", {0.5, 1.5, 2.5}),
                  texts("word", {"a", "", "xyz"})},
                 3);
  };
  {
    const Dataset rows = rows_of({batch(0), table(batch(0).children, 0), batch(3)});
    ASSERT_EQ(rows.cardinality().count(), 6U);
    for (std::uint64_t i = 0; i < 6; ++i) {
      const Sample row = rows.sample(i);
      EXPECT_EQ(row["id"].item<std::int64_t>(), static_cast<std::int64_t>(i));
      EXPECT_EQ(row["odd"].item<bool>(), i % 3 == 1);
      EXPECT_EQ(row["x"].item<double>(), 0.5 + static_cast<double>(i % 3));
      EXPECT_EQ(row["word"].text(), i % 3 == 0 ? "a" : i % 3 == 1 ? "" : "xyz");
    }
    EXPECT_EQ(rows.element_spec().text(), "{id: i64[], odd: bool[], word: string[], x: f64[]}");
  }
  EXPECT_EQ(testing::arrow_alive(), 0) << "everything is released with the dataset";
}

TEST(ArrowTest, ListsAreRaggedAndFixedListsAreNot) {
  const Dataset rows = rows_of({table(
      {lists("boxes", {0, 1, 1, 3},
             {"+w:2", "", 3, {kNoBuffer}, {numbers<float>("", "f", {1, 2, 3, 4, 5, 6})}}),
       {"+w:2", "pair", 3, {kNoBuffer}, {numbers<std::int16_t>("", "s", {1, 2, 3, 4, 5, 6})}},
       lists("tokens", {0, 2, 2, 5}, numbers<std::int32_t>("", "i", {7, 8, 9, 10, 11}))},
      3)});
  EXPECT_EQ(rows.element_spec().text(), "{boxes: f32[?, 2], pair: i16[2], tokens: i32[?]}");
  EXPECT_THAT(values<std::int32_t>(rows, 0, "tokens"), ElementsAre(7, 8));
  EXPECT_THAT(values<std::int32_t>(rows, 1, "tokens"), ElementsAre());
  EXPECT_THAT(values<std::int32_t>(rows, 2, "tokens"), ElementsAre(9, 10, 11));
  EXPECT_THAT(values<std::int16_t>(rows, 1, "pair"), ElementsAre(3, 4));
  EXPECT_THAT(values<float>(rows, 2, "boxes"), ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(rows.sample(2)["boxes"].shape(), (Shape{2, 2}));
}

TEST(ArrowTest, OffsetsOfSlicesAdd) {
  // The table begins with its row 1, each column with its value 1: row 0 is value 2.
  ArrowPart id = numbers<std::int64_t>("id", "l", {0, 1, 2, 3}, bits_of({1, 1, 1, 1}));
  ArrowPart words = texts("word", {"a", "b", "c", "d"});
  ArrowPart flags{"b", "flag", 3, {kNoBuffer, bits_of({0, 0, 1, 0})}};
  ArrowPart tokens =
      lists("tokens", {0, 1, 2, 4, 5}, numbers<std::uint8_t>("", "C", {9, 1, 2, 3, 4, 5}));
  ArrowPart pairs{"+w:2",
                  "pair",
                  3,
                  {kNoBuffer},
                  {numbers<std::uint8_t>("", "C", {9, 0, 1, 2, 3, 4, 5, 6, 7})}};
  for (ArrowPart* part : {&id, &words, &flags, &tokens, &pairs}) {
    part->offset = 1;
    part->length = 3;
  }
  tokens.children[0].offset = 1;
  pairs.children[0].offset = 1;
  const Dataset rows = rows_of({table({id, words, flags, tokens, pairs}, 2, 1)});
  EXPECT_THAT(values<std::int64_t>(rows, 0, "id"), ElementsAre(2));
  EXPECT_EQ(rows.sample(0)["word"].text(), "c");
  EXPECT_TRUE(rows.sample(0)["flag"].item<bool>());
  EXPECT_THAT(values<std::uint8_t>(rows, 0, "tokens"), ElementsAre(3, 4));
  EXPECT_THAT(values<std::uint8_t>(rows, 0, "pair"), ElementsAre(4, 5));
}

TEST(ArrowTest, StructsAreNestedAndDictionariesAreTheirValues) {
  ArrowPart color = numbers<std::int8_t>("color", "c", {1, 0, 1});
  color.dictionary.push_back(texts("", {"red", "blue"}));
  ArrowPart level = numbers<std::uint16_t>("level", "S", {2, 2, 0});
  level.dictionary.push_back(numbers<double>("", "g", {0.1, 0.2, 0.3}));
  const Dataset rows = rows_of({table(
      {{"+s", "at", 3, {kNoBuffer}, {numbers<std::int32_t>("y", "i", {4, 5, 6}), color}}, level},
      3)});
  const Sample row = rows.sample(2);
  EXPECT_EQ(row.structure().paths().size(), 3U);
  EXPECT_EQ(row.leaves()[0].text(), "blue");
  EXPECT_EQ(row.leaves()[1].item<std::int32_t>(), 6);
  EXPECT_EQ(row["level"].item<double>(), 0.1);
}

TEST(ArrowTest, TextViewsAreInsideOrInOtherBuffers) {
  const std::string long_text = "a text of more than twelve bytes";
  std::string views(32, '\0');
  const auto put = [&](std::size_t at, std::int32_t value) { std::memcpy(&views[at], &value, 4); };
  put(0, 5);
  std::memcpy(&views[4], "short", 5);
  put(16, static_cast<std::int32_t>(long_text.size()));
  std::memcpy(&views[20], long_text.data(), 4);
  put(24, 0);
  put(28, 3);
  const std::string sizes =
      bytes_of(std::vector<std::int64_t>{static_cast<std::int64_t>(long_text.size()) + 3});
  ArrowPart words{"vu", "word", 2, {kNoBuffer, views, "xyz" + long_text, sizes}};
  EXPECT_EQ(rows_of({table({words}, 2)}).sample(0)["word"].text(), "short");
  EXPECT_EQ(rows_of({table({words}, 2)}).sample(1)["word"].text(), long_text);
  put(28, 4);  // one byte too far
  words.buffers[1] = views;
  EXPECT_THAT([&] { (void)rows_of({table({words}, 2)}).sample(1); },
              ThrowsMessage<SampleError>(HasSubstr("not within its data")));
}

TEST(ArrowTest, ANullFailsItsSampleOrBecomesAValue) {
  const std::vector<ArrowPart> batches{table(
      {lists("list", {0, 2, 2, 3}, numbers<std::int32_t>("", "i", {1, 2, 3}, bits_of({1, 0, 1})),
             bits_of({1, 0, 1})),
       {"+w:2", "pair", 3, {bits_of({0, 1, 1})}, {numbers<float>("", "f", {1, 2, 3, 4, 5, 6})}},
       texts("word", {"a", "b", "c"}, bits_of({1, 0, 1})),
       numbers<double>("x", "g", {1, 2, 3}, bits_of({1, 0, 1}))},
      3)};
  EXPECT_THAT([&] { (void)rows_of(batches).sample(0); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("null"), HasSubstr("nulls="))));
  Loader loader(rows_of(batches).batch(3), {.threads = 1, .on_error = OnError::skip});
  EXPECT_EQ(loader.next()->rows(), 1U);

  const Dataset rows = rows_of(
      batches, {.nulls = {{"list", -1.0}, {"pair", 9.0}, {"word", "?"}, {"x", std::nan("")}}});
  EXPECT_THAT(values<std::int32_t>(rows, 0, "list"), ElementsAre(1, -1));
  EXPECT_THAT(values<std::int32_t>(rows, 1, "list"), ElementsAre());
  EXPECT_THAT(values<float>(rows, 0, "pair"), ElementsAre(9, 9));
  EXPECT_EQ(rows.sample(1)["word"].text(), "?");
  EXPECT_TRUE(std::isnan(rows.sample(1)["x"].item<double>()));
  EXPECT_THAT([&] { (void)rows_of(batches, {.nulls = {{"x", "text"}}}); },
              ThrowsMessage<ConfigError>(HasSubstr("name a number")));
  EXPECT_THAT([&] { (void)rows_of(batches, {.nulls = {{"list", 0.5}}}); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot become this value")));
  EXPECT_THAT([&] { (void)rows_of(batches, {.nulls = {{"y", 0.0}}}); },
              ThrowsMessage<ConfigError>(HasSubstr("\"y\", which is not there")));
}

TEST(ArrowTest, RowsBeforeABadOneAreCompleteInEveryColumn) {
  const Dataset rows =
      rows_of({table({numbers<std::int64_t>("a", "l", {1, 2, 3, 4}, bits_of({1, 1, 0, 1})),
                      numbers<std::int64_t>("b", "l", {5, 6, 7, 8}),
                      numbers<std::int64_t>("c", "l", {9, 10, 11, 12}, bits_of({1, 0, 1, 1}))},
                     4)});
  Loader loader(rows.batch(4), {.threads = 1, .on_error = OnError::skip});
  const std::optional<Batch> batch = loader.next();
  ASSERT_EQ(batch->rows(), 2U);
  for (const std::size_t row : {0U, 1U}) {
    const std::int64_t number = row == 0 ? 1 : 4;
    EXPECT_EQ(batch->row(row)["a"].item<std::int64_t>(), number);
    EXPECT_EQ(batch->row(row)["b"].item<std::int64_t>(), number + 4);
    EXPECT_EQ(batch->row(row)["c"].item<std::int64_t>(), number + 8);
  }
}

TEST(ArrowTest, ANullAmongTheBoxesOfAListIsANull) {
  const auto boxes = [](std::string valid) {
    return table(
        {lists("boxes", {0, 1, 3},
               {"+w:2", "", 3, {std::move(valid)}, {numbers<float>("", "f", {1, 2, 3, 4, 5, 6})}})},
        2);
  };
  EXPECT_THAT(values<float>(rows_of({boxes(kNoBuffer)}), 1, "boxes"), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT([&] { (void)rows_of({boxes(bits_of({1, 0, 1}))}).sample(1); },
              ThrowsMessage<SampleError>(HasSubstr("a null in it")));
  EXPECT_THAT(
      values<float>(rows_of({boxes(bits_of({1, 0, 1}))}, {.nulls = {{"boxes", 9.0}}}), 1, "boxes"),
      ElementsAre(9, 9, 5, 6));
}

TEST(ArrowTest, ColumnsThatAreTooShortAreRefused) {
  const auto refused = [](std::vector<ArrowPart> columns) {
    return [columns] { (void)rows_of({table(columns, 3)}); };
  };
  const auto damaged = ThrowsMessage<ConfigError>(HasSubstr("do not fit its type"));
  EXPECT_THAT(refused({numbers<std::int32_t>("a", "i", {1, 2})}), damaged);
  EXPECT_THAT(refused({{"+w:2", "a", 3, {kNoBuffer}, {numbers<float>("", "f", {1, 2, 3})}}}),
              damaged);
  EXPECT_THAT(refused({lists("a", {0, 0, 0, 1},
                             {"+w:2", "", 3, {kNoBuffer}, {numbers<float>("", "f", {1, 2})}})}),
              damaged);
  const Dataset beyond =
      rows_of({table({lists("a", {0, 0, 0, 4}, numbers<float>("", "f", {1}))}, 3)});
  EXPECT_THAT([&] { (void)beyond.sample(2); },
              ThrowsMessage<SampleError>(HasSubstr("not within its data")));
  ArrowPart words = texts("a", {"x", "y", "z"});
  words.buffers[1] = bytes_of(std::vector<std::int32_t>{0, 1, 9, 3});
  EXPECT_THAT([&] { (void)rows_of({table({words}, 3)}).sample(1); },
              ThrowsMessage<SampleError>(HasSubstr("not within its data")));
}

TEST(ArrowTest, AnEmptyTextMayHaveNoBuffer) {
  ArrowPart words = texts("a", {"", ""});
  words.buffers[2] = kNoBuffer;
  Loader loader(rows_of({table({words}, 2)}).batch(2), {.threads = 0});
  EXPECT_EQ(loader.next()->row(1)["a"].text(), "");
}

TEST(ArrowTest, OtherValuesForNullsAreOtherValues) {
  const std::vector<ArrowPart> batches{
      table({numbers<double>("x", "g", {1, 2}, bits_of({1, 1}))}, 2)};
  const auto values_of = [&](double value) {
    return rows_of(batches, {.nulls = {{"x", value}}}).batch(1).digests().values;
  };
  EXPECT_EQ(values_of(1), values_of(1));
  EXPECT_NE(values_of(1), values_of(2));
}

TEST(ArrowTest, ANullStructHasNullColumns) {
  const Dataset rows = rows_of(
      {table({{"+s", "at", 2, {bits_of({0, 1})}, {numbers<std::int32_t>("y", "i", {4, 5})}}}, 2)});
  EXPECT_THROW((void)rows.sample(0), SampleError);
  EXPECT_EQ(rows.sample(1).leaves()[0].item<std::int32_t>(), 5);
}

TEST(ArrowTest, ABadRowIsNamedWithItsFile) {
  const auto batch = table({numbers<double>("x", "g", {1, 2, 3}, bits_of({1, 1, 0}))}, 3);
  const Dataset rows =
      rows_of({batch}, {.files = {{"a.arrow", 2}, {"b.arrow", 1}}, .word = "from_files"});
  EXPECT_THAT([&] { (void)rows.sample(2); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("from_files("), HasSubstr("b.arrow"))));
  EXPECT_THAT([&] { (void)rows_of({batch}, {.files = {{"a.arrow", 2}}}); },
              ThrowsMessage<ConfigError>(HasSubstr("the files have 2 rows and the table has 3")));
}

TEST(ArrowTest, OtherTypesAndDamageAreNamed) {
  const auto refused = [](ArrowPart column) {
    return [column] { (void)rows_of({table({column}, 1)}); };
  };
  EXPECT_THAT(refused({"d:19,10", "price", 1, {kNoBuffer, std::string(16, '\0')}}),
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("price"), HasSubstr("d:19,10"))));
  EXPECT_THAT(refused(lists("words", {0, 1}, texts("", {"a"}))),
              ThrowsMessage<ConfigError>(HasSubstr("a list of u")));
  EXPECT_THAT(refused({"u", "word", 1, {kNoBuffer}}),
              ThrowsMessage<ConfigError>(HasSubstr("do not fit its type")));
  EXPECT_THAT([] { (void)rows_of({numbers<std::int32_t>("", "i", {1})}); },
              ThrowsMessage<ConfigError>(HasSubstr("not a table")));
  const auto two = [](const char* name) { return numbers<std::int32_t>(name, "i", {1}); };
  EXPECT_THAT([&] { (void)rows_of({table({two("a"), two("a")}, 1)}); },
              ThrowsMessage<ConfigError>(HasSubstr("two columns")));
  EXPECT_THAT([&] { (void)rows_of({table({lists("l", {3, 1}, two(""))}, 1)}).sample(0); },
              ThrowsMessage<SampleError>(HasSubstr("not within its data")));
  ArrowPart wrong = numbers<std::int8_t>("color", "c", {5});
  wrong.dictionary.push_back(texts("", {"red"}));
  EXPECT_THAT([&] { (void)rows_of({table({wrong}, 1)}).sample(0); },
              ThrowsMessage<SampleError>(HasSubstr("not within its data")));
  ArrowStream source;
  source.batches.push_back(table({two("a")}, 1));
  source.error = "the disk is on fire";
  ArrowArrayStream stream = source.stream();
  EXPECT_THAT([&] { (void)from_arrow(stream); },
              ThrowsMessage<ConfigError>(HasSubstr("the disk is on fire")));
  EXPECT_EQ(testing::arrow_alive(), 0);
}

TEST(ArrowTest, OneBatchWithItsSchema) {
  const ArrowPart batch = table({numbers<std::int32_t>("a", "i", {1, 2})}, 2);
  ArrowSchema schema = testing::schema_of(batch);
  ArrowArray array = testing::array_of(batch);
  {
    const Dataset rows = from_arrow(schema, array);
    EXPECT_EQ(rows.sample(1)["a"].item<std::int32_t>(), 2);
  }
  EXPECT_EQ(schema.release, nullptr);
  EXPECT_EQ(array.release, nullptr);
  EXPECT_EQ(testing::arrow_alive(), 0);
}

TEST(ArrowTest, ListsAndTextsAreNotCopied) {
  const ArrowPart batch =
      table({lists("list", {0, 1, 3}, numbers<std::int32_t>("", "i", {7, 8, 9})),
             texts("text", {"a", "bc"})},
            2);
  ArrowSchema schema = testing::schema_of(batch);
  ArrowArray array = testing::array_of(batch);
  const auto* const items =
      static_cast<const std::byte*>(array.children[0]->children[0]->buffers[1]);
  const auto* const letters = static_cast<const std::byte*>(array.children[1]->buffers[2]);
  const Sample row = from_arrow(schema, array).sample(1);
  EXPECT_EQ(row["list"].raw().data(), items + sizeof(std::int32_t));
  EXPECT_EQ(row["text"].raw().data(), letters + 1);
}

TEST(ArrowTest, AStateKnowsOtherRows) {
  const auto order_of = [](std::vector<std::int64_t> ids) {
    return rows_of({table({numbers("id", "l", ids)}, 3)}).digests().order;
  };
  EXPECT_EQ(order_of({1, 2, 3}), order_of({1, 2, 3}));
  EXPECT_NE(order_of({1, 2, 3}), order_of({1, 2, 4}));
}

}  // namespace
}  // namespace penstock
