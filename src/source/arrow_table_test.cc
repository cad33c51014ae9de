#include "source/arrow_table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mix.h"
#include "sample/rows.h"
#include "source/arrow_tables_for_tests.h"

namespace penstock {
namespace {

using testing::ArrowPart;
using testing::bits_of;
using testing::bytes_of;
using testing::kNoBuffer;
using testing::numbers;
using testing::texts;

/// Columns of every kind, `rows` of them, which begin at the value `offset` of their arrays.
ArrowPart columns_of_every_kind(std::int64_t rows, std::int64_t offset, std::uint64_t seed,
                                bool nulls) {
  const std::int64_t all = rows + offset;
  std::vector<std::int32_t> values;
  std::vector<std::int32_t> offsets{0};
  std::vector<int> valid;
  std::vector<std::string> words;
  std::vector<std::int8_t> indices;
  for (std::int64_t i = 0; i < all; ++i) {
    const std::uint64_t drawn = mix(seed + static_cast<std::uint64_t>(i));
    values.push_back(static_cast<std::int32_t>(drawn));
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(drawn % 4));
    valid.push_back(nulls && drawn % 5 == 0 ? 0 : 1);
    words.push_back(std::string(drawn % 7, static_cast<char>('a' + drawn % 26)));
    indices.push_back(static_cast<std::int8_t>(drawn % 2));
  }
  const std::string marks = nulls ? bits_of(valid) : kNoBuffer;
  std::vector<std::int16_t> items(static_cast<std::size_t>(offsets.back()));
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = static_cast<std::int16_t>(i);
  std::vector<float> pairs(static_cast<std::size_t>(all) * 2);
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = static_cast<float>(i);
  ArrowPart color = numbers<std::int8_t>("color", "c", indices, marks);
  color.dictionary.push_back(texts("", {"red", "blue"}));
  std::vector<ArrowPart> columns{
      {"b", "flag", all, {marks, bits_of(valid)}},
      numbers("number", "i", values, marks),
      {"+w:2", "pair", all, {marks}, {numbers("", "f", pairs)}},
      {"+l", "list", all, {marks, bytes_of(offsets)}, {numbers("", "s", items)}},
      texts("word", words, marks),
      color};
  for (ArrowPart& column : columns) {
    column.offset = offset;
    column.length = rows;
  }
  return testing::table(std::move(columns), rows);
}

const std::map<std::string, NullValue> kNulls{{"flag", 0.0},  {"number", -1.0}, {"pair", 0.5},
                                              {"list", -1.0}, {"word", "?"},    {"color", "?"}};

ArrowTable table_of(const std::vector<ArrowPart>& batches,
                    const std::map<std::string, NullValue>& nulls) {
  Released<ArrowSchema> schema;
  static_cast<ArrowSchema&>(schema) = testing::schema_of(batches.front());
  auto own = std::make_shared<ArrowBatches>();
  for (const ArrowPart& batch : batches) {
    ArrowArray array = testing::array_of(batch);
    own->emplace_back(array);
  }
  return {std::make_shared<const ArrowLayout>("test", schema, nulls), std::move(own)};
}

class ArrowTableTest : public ::testing::TestWithParam<bool> {};

TEST_P(ArrowTableTest, RowsAreTheSameWhereverTheyAreWrittenAndHoweverTheyAreLent) {
  const bool nulls = GetParam();
  const ArrowTable table =
      table_of({columns_of_every_kind(9, 0, 1, nulls), columns_of_every_kind(0, 0, 2, nulls),
                columns_of_every_kind(20, 3, 3, nulls), columns_of_every_kind(1, 8, 4, nulls)},
               kNulls);
  ASSERT_EQ(table.rows(), 30U);
  const std::vector<std::uint64_t> rows{29, 0, 28, 8, 9, 9, 17, 3, 29};
  const std::vector<std::uint32_t> places{0, 1, 3, 4, 5, 8, 9, 10, 11};  // of 12 rows
  for (const auto lending : {ArrowTable::Lending::views, ArrowTable::Lending::copies}) {
    Scratch scratch;
    const Scratch::Frame frame(scratch);
    const ScratchBlock block(table.layout().spec(), 12, scratch);
    ASSERT_TRUE(table.write({rows, places}, block.view(), lending, scratch));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Sample row = read_row(block.view(), places[i]);
      for (std::size_t leaf = 0; leaf < row.leaves().size(); ++leaf) {
        auto expected = table.value_of(leaf, rows[i]);
        ASSERT_TRUE(expected);
        EXPECT_EQ(row.leaves()[leaf].text(), expected->text()) << "row " << i << ", leaf " << leaf;
        EXPECT_EQ(row.leaves()[leaf].shape(), expected->shape());
      }
    }
  }
  EXPECT_GT(table.bytes(), 30U * (4 + 8 + 4 + 4));
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutNulls, ArrowTableTest, ::testing::Bool());

TEST(ArrowTableFailureTest, TheFirstBadPlaceOfAnyColumnIsNamedAndRowsBeforeItAreComplete) {
  const ArrowTable table = table_of(
      {testing::table({numbers<std::int32_t>("a", "i", {1, 2, 3, 4}, bits_of({1, 1, 1, 0})),
                       numbers<std::int32_t>("b", "i", {5, 6, 7, 8}, bits_of({1, 0, 1, 1})),
                       numbers<std::int32_t>("c", "i", {9, 10, 11, 12})},
                      4)},
      {});
  Scratch scratch;
  const Scratch::Frame frame(scratch);
  const ScratchBlock block(table.layout().spec(), 10, scratch);
  const std::vector<std::uint64_t> rows{2, 0, 1, 3};
  const std::vector<std::uint32_t> places{2, 3, 5, 7};
  const auto done = table.write({rows, places}, block.view(), ArrowTable::Lending::views, scratch);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 5U);
  EXPECT_NE(done.failure().message.find("column \"b\""), std::string::npos);
  EXPECT_EQ(read_row(block.view(), 2)["c"].item<std::int32_t>(), 11);
  EXPECT_EQ(read_row(block.view(), 3)["c"].item<std::int32_t>(), 9);
}

}  // namespace
}  // namespace penstock
