#include "sample/packed_field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "penstock/rng.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Rows of i32 that count from 10, 20, ...
struct Rows {
  explicit Rows(std::vector<Shape> sizes) : shapes(std::move(sizes)) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      values.emplace_back(shape_values(shapes[i]));
      std::iota(values.back().begin(), values.back().end(),
                static_cast<std::int32_t>(10 * (i + 1)));
    }
    for (std::size_t i = 0; i < shapes.size(); ++i)
      rows.push_back({std::as_bytes(std::span(values[i])), &shapes[i]});
  }
  std::vector<Shape> shapes;
  std::vector<std::vector<std::int32_t>> values;
  std::vector<RowValue> rows;
};

std::vector<std::int32_t> numbers(const std::vector<std::byte>& bytes) {
  std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

const FieldSpec kTokens{"tokens", Dtype::i32, {kUnknown}};

TEST(PackedFieldTest, RowsAreJoinedAlongTheirFirstSize) {
  Rows rows({{2}, {0}, {3}});
  rows.rows.push_back({});  // padding
  const PackedField packed = pack_rows(kTokens, rows.rows, false);
  EXPECT_THAT(numbers(packed.values), ElementsAre(10, 11, 30, 31, 32));
  EXPECT_THAT(packed.offsets, ElementsAre(0, 2, 2, 5, 5));
  EXPECT_THAT(packed.lengths, ElementsAre(2, 0, 3, 0));
  EXPECT_TRUE(packed.shapes.empty());
  EXPECT_FALSE(packed.row_shape);
  EXPECT_THAT(packed.shape_of(2, kTokens), ElementsAre(3));
  EXPECT_EQ(packed.row(2).size(), 12U);
}

TEST(PackedFieldTest, OffsetsCountRowsOfFixedInnerSizes) {
  const FieldSpec boxes{"boxes", Dtype::i32, {kUnknown, 2}};
  const Rows rows({{2, 2}, {1, 2}});
  const PackedField packed = pack_rows(boxes, rows.rows, false);
  EXPECT_THAT(packed.offsets, ElementsAre(0, 2, 3));
  EXPECT_THAT(packed.shape_of(1, boxes), ElementsAre(1, 2));
  // Rows without bytes still have a length.
  const FieldSpec empty{"empty", Dtype::i32, {kUnknown, 0}};
  const Rows none({{4, 0}});
  EXPECT_THAT(pack_rows(empty, none.rows, false).offsets, ElementsAre(0, 4));
}

TEST(PackedFieldTest, SeveralOpenSizesAreKeptByRow) {
  const FieldSpec image{"image", Dtype::i32, {kUnknown, kUnknown}};
  const Rows rows({{1, 3}, {2, 2}});
  const PackedField packed = pack_rows(image, rows.rows, false);
  EXPECT_THAT(packed.offsets, ElementsAre(0, 3, 7));
  EXPECT_THAT(packed.shapes, ElementsAre(1, 3, 2, 2));
  EXPECT_THAT(packed.shape_of(1, image), ElementsAre(2, 2));
}

TEST(PackedFieldTest, RowsOfOneSizeAreATensorIfWanted) {
  const Rows same({{2}, {2}});
  EXPECT_FALSE(pack_rows(kTokens, same.rows, false).row_shape);
  EXPECT_THAT(*pack_rows(kTokens, same.rows, true).row_shape, ElementsAre(2));
  const Rows other({{2}, {1}});
  EXPECT_FALSE(pack_rows(kTokens, other.rows, true).row_shape);
  EXPECT_THAT(*pack_rows(kTokens, {}, true).row_shape, ElementsAre(0)) << "no rows";
}

TEST(PadRowsTest, RowsArePaddedToTheLongestOnTheSideAsked) {
  Rows rows({{2}, {3}});
  rows.rows.push_back({});
  PackedField padded;
  ASSERT_FALSE(pad_rows(kTokens, rows.rows, {.value = -1}, padded));
  EXPECT_THAT(numbers(padded.values), ElementsAre(10, 11, -1, 20, 21, 22, -1, -1, -1));
  EXPECT_THAT(*padded.row_shape, ElementsAre(3));
  EXPECT_THAT(padded.lengths, ElementsAre(2, 3, 0));
  ASSERT_FALSE(pad_rows(kTokens, rows.rows, {.side = PadSide::left, .multiple_of = 4}, padded));
  EXPECT_THAT(numbers(padded.values), ElementsAre(0, 0, 10, 11, 0, 20, 21, 22, 0, 0, 0, 0));
}

TEST(PadRowsTest, AFixedLengthHoldsOrTheRowIsNamed) {
  const Rows rows({{2}, {3}});
  PackedField padded;
  ASSERT_FALSE(pad_rows(kTokens, rows.rows, {.length = 4}, padded));
  EXPECT_THAT(*padded.row_shape, ElementsAre(4));
  const auto cannot = pad_rows(kTokens, rows.rows, {.length = 2}, padded);
  ASSERT_TRUE(cannot);
  EXPECT_EQ(cannot->row, 1U);
  EXPECT_THAT(cannot->why, HasSubstr("length 3, more than the 2"));
}

TEST(PadRowsTest, RowsThatCannotFitIntoMemoryAreAnError) {
  const FieldSpec field{"x", Dtype::i32, {kUnknown, kUnknown, kUnknown}};
  const Rows rows({{1, 1, 1}});
  PackedField padded;
  const auto cannot = pad_rows(field, rows.rows, {.multiple_of = 1LL << 32}, padded);
  ASSERT_TRUE(cannot);
  EXPECT_THAT(cannot->why, HasSubstr("do not fit into memory"));
}

/// The same by indices, one value at a time.
std::vector<std::int32_t> padded_slowly(const Rows& rows, const Shape& wanted, std::int32_t value,
                                        bool left) {
  std::vector<std::int32_t> all;
  for (std::size_t row = 0; row < rows.rows.size(); ++row) {
    const Shape& shape = rows.shapes[row];
    for (std::int64_t i = 0; i < wanted[0]; ++i)
      for (std::int64_t j = 0; j < wanted[1]; ++j)
        for (std::int64_t k = 0; k < wanted[2]; ++k) {
          const std::int64_t from = left ? i - (wanted[0] - shape[0]) : i;
          const bool inside = from >= 0 && from < shape[0] && j < shape[1] && k < shape[2];
          all.push_back(
              inside
                  ? rows.values[row][static_cast<std::size_t>((from * shape[1] + j) * shape[2] + k)]
                  : value);
        }
  }
  return all;
}

TEST(PadRowsTest, AnyOpenSizesArePaddedLikeOneValueAtATime) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed, 17);
    FieldSpec field{"x", Dtype::i32, {kUnknown, kUnknown, kUnknown}};
    for (std::size_t d = 0; d < 3; ++d)
      if (rng.integer(2) == 1) field.shape[d] = static_cast<std::int64_t>(rng.integer(4));
    std::vector<Shape> shapes(1 + rng.integer(5));
    for (Shape& shape : shapes)
      for (std::size_t d = 0; d < 3; ++d)
        shape.push_back(field.shape[d] == kUnknown ? static_cast<std::int64_t>(rng.integer(5))
                                                   : field.shape[d]);
    const Rows rows(shapes);
    const bool left = rng.integer(2) == 1;
    const FieldPadding rule{.value = 7,
                            .side = left ? PadSide::left : PadSide::right,
                            .multiple_of = static_cast<std::int64_t>(1 + rng.integer(3))};
    PackedField padded;
    ASSERT_FALSE(pad_rows(field, rows.rows, rule, padded));
    EXPECT_EQ(numbers(padded.values), padded_slowly(rows, *padded.row_shape, 7, left)) << seed;
  }
}

TEST(ValueBytesTest, OnlyExactValuesOfADtype) {
  EXPECT_TRUE(value_bytes(255, Dtype::u8));
  EXPECT_FALSE(value_bytes(256, Dtype::u8));
  EXPECT_FALSE(value_bytes(-1, Dtype::u64));
  EXPECT_FALSE(value_bytes(0.5, Dtype::i32));
  EXPECT_TRUE(value_bytes(-9223372036854775808.0, Dtype::i64));
  EXPECT_FALSE(value_bytes(9223372036854775808.0, Dtype::i64));
  EXPECT_FALSE(value_bytes(2, Dtype::boolean));
  EXPECT_TRUE(value_bytes(0.1, Dtype::bf16));
  EXPECT_FALSE(value_bytes(0, Dtype::string));
}

}  // namespace
}  // namespace penstock
