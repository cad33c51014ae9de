#include "sample/row_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sample/rows.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

const ElementSpec kNumber = ElementSpec::single(Dtype::i64);
const ElementSpec kRecord =
    ElementSpec::dict({{"id", Dtype::i64, {}}, {"name", Dtype::bytes, {}}, {"x", Dtype::f32, {2}}});

Sample record(std::int64_t id) {
  return Sample::dict({{"id", Tensor::scalar(id)},
                       {"name", Tensor::bytes(std::string(static_cast<std::size_t>(id % 4), 'n'))},
                       {"x", Tensor::of(std::vector<float>{static_cast<float>(id), 0.5F})}});
}

void put(RowBuffer& buffer, std::size_t row, const Sample& sample) {
  const BlockView view = buffer.rows(row, 1);
  ASSERT_FALSE(write_row(view, 0, sample));
  view.identity.sample_id[0] = 100 + row;
  view.identity.occurrence[0] = 200 + row;
}

/// The values of a row as text.
std::string seen(const BlockView& view, std::size_t row) {
  std::string text = std::to_string(view.identity.sample_id[row]) + "*" +
                     std::to_string(view.identity.occurrence[row]);
  const Sample sample = read_row(view, row);
  for (const Tensor& leaf : sample.leaves()) text += "," + std::string(leaf.text());
  return text;
}

std::vector<std::string> all_of(const BlockView& view, std::size_t rows) {
  std::vector<std::string> lines;
  for (std::size_t row = 0; row < rows; ++row) lines.push_back(seen(view, row));
  return lines;
}

TEST(RowBufferTest, ExistingRowsSurviveGrowth) {
  static const ElementSpec kUnknownSpec = ElementSpec::unknown();
  for (const ElementSpec* spec : {&kRecord, &kUnknownSpec}) {
    RowBuffer buffer(*spec);
    EXPECT_EQ(buffer.capacity(), 0U);
    buffer.reserve(3);
    for (std::size_t row = 0; row < 3; ++row)
      put(buffer, row, record(static_cast<std::int64_t>(row)));
    const auto before = all_of(buffer.rows(0, 3), 3);
    for (const std::size_t rows : {4U, 5U, 100U, 1000U}) {
      buffer.reserve(rows);
      EXPECT_GE(buffer.capacity(), rows);
      EXPECT_EQ(all_of(buffer.rows(0, 3), 3), before);
    }
  }
}

TEST(RowBufferTest, ItNeverShrinks) {
  RowBuffer buffer(kNumber);
  buffer.reserve(10);
  const std::size_t capacity = buffer.capacity();
  buffer.reserve(2);
  EXPECT_EQ(buffer.capacity(), capacity);
}

TEST(RowBufferTest, AViewFromTheMiddleWritesItsOwnRows) {
  RowBuffer buffer(kNumber);
  buffer.reserve(4);
  for (std::size_t row = 0; row < 4; ++row) put(buffer, row, Tensor::scalar<std::int64_t>(0));
  const BlockView middle = buffer.rows(1, 2);
  const auto column = Block(middle).column<std::int64_t>();
  column[0] = 7;
  column[1] = 8;
  const BlockView all = buffer.rows(0, 4);
  EXPECT_THAT(Block(all).column<std::int64_t>(), ElementsAre(0, 7, 8, 0));
}

TEST(RowBufferTest, AFieldWithoutValuesTakesNoBytes) {
  const ElementSpec spec = ElementSpec::single(Dtype::f32, {0});
  RowBuffer buffer(spec);
  buffer.reserve(2);
  buffer.reserve(9);
  EXPECT_FALSE(write_row(buffer.rows(8, 1), 0, Tensor::of(std::vector<float>{})));
}

TEST(KeepRowsTest, KeptRowsMoveToTheFrontInOrder) {
  static const ElementSpec kUnknownSpec = ElementSpec::unknown();
  std::mt19937 draw(1);  // NOLINT: the same each time
  for (const ElementSpec* spec : {&kRecord, &kUnknownSpec}) {
    for (int trial = 0; trial < 200; ++trial) {
      const std::size_t rows = draw() % 40;
      RowBuffer buffer(*spec);
      buffer.reserve(rows + 1);
      std::vector<std::string> expected;
      std::vector<std::uint8_t> keep;
      const std::uint64_t in_eight = draw() % 9;  // from none to all
      for (std::size_t row = 0; row < rows; ++row) {
        put(buffer, row, record(static_cast<std::int64_t>(row)));
        keep.push_back(draw() % 8 < in_eight ? 1 : 0);
        if (keep.back() != 0) expected.push_back(seen(buffer.rows(0, rows), row));
      }
      const BlockView view = buffer.rows(0, rows);
      ASSERT_EQ(keep_rows(view, keep), expected.size());
      ASSERT_EQ(all_of(view, expected.size()), expected);
    }
  }
}

}  // namespace
}  // namespace penstock
