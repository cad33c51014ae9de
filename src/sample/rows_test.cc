#include "sample/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/error.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::ThrowsMessage;

const ElementSpec& mixed_spec() {
  static const ElementSpec spec = ElementSpec::dict(
      {{"none", Dtype::f32, {0}}, {"text", Dtype::string, {}}, {"x", Dtype::i32, {2}}});
  return spec;
}

const ElementSpec& unknown_spec() {
  static const ElementSpec spec = ElementSpec::unknown();
  return spec;
}

Sample mixed(std::int32_t number) {
  return Sample::dict({{"none", Tensor::of(std::vector<float>{})},
                       {"text", Tensor::bytes(std::to_string(number), Dtype::string)},
                       {"x", Tensor::of(std::vector<std::int32_t>{number, -number})}});
}

/// A block of rows 0, 1, ... with sample ids from 100 and occurrences from 200.
class FilledBlock {
 public:
  FilledBlock(std::size_t rows, Scratch& scratch) : block_(mixed_spec(), rows, scratch) {
    for (std::size_t row = 0; row < rows; ++row) {
      EXPECT_EQ(write_row(view(), row, mixed(static_cast<std::int32_t>(row))), std::nullopt);
      view().identity.sample_id[row] = 100 + row;
      view().identity.occurrence[row] = 200 + row;
    }
  }
  [[nodiscard]] const BlockView& view() const { return block_.view(); }

 private:
  ScratchBlock block_;
};

void expect_row(const BlockView& block, std::size_t row, std::int32_t number) {
  const Sample sample = read_row(block, row);
  EXPECT_EQ(sample["text"].text(), std::to_string(number));
  EXPECT_THAT(sample["x"].values<std::int32_t>(), ElementsAre(number, -number));
  EXPECT_EQ(sample["none"].raw().size(), 0U);
  EXPECT_EQ(block.identity.sample_id[row], 100U + static_cast<std::uint64_t>(number));
}

TEST(RowsTest, AWrittenRowIsReadBackUnchanged) {
  Scratch scratch;
  const FilledBlock block(5, scratch);
  for (int row = 0; row < 5; ++row) expect_row(block.view(), static_cast<std::size_t>(row), row);
}

TEST(RowsTest, ASampleOfAnotherSpecIsReportedAndNotWritten) {
  Scratch scratch;
  const FilledBlock block(2, scratch);
  Sample other = Sample::dict({{"none", Tensor::of(std::vector<float>{})},
                               {"text", Tensor::bytes("changed", Dtype::string)},
                               {"x", Tensor::of(std::vector<std::int32_t>{1, 2, 3})}});
  EXPECT_THAT(write_row(block.view(), 1, other),
              Optional(AllOf(HasSubstr("i32[3]"), HasSubstr("i32[2]"))));
  expect_row(block.view(), 1, 1);
}

TEST(RowsTest, ATensorWithoutBytesIsReportedAndNotCopied) {
  const ElementSpec spec = ElementSpec::single(Dtype::u8);
  Scratch scratch;
  const ScratchBlock known(spec, 1, scratch);
  const ScratchBlock unknown(unknown_spec(), 1, scratch);
  for (const ScratchBlock* block : {&known, &unknown}) {
    EXPECT_TRUE(write_row(block->view(), 0, Tensor()).has_value());
    EXPECT_TRUE(write_row(block->view(), 0, Sample()).has_value());
  }
}

TEST(RowsTest, DenseTensorsOfAReadRowAreViewsOfTheBlock) {
  Scratch scratch;
  const FilledBlock block(3, scratch);
  const Sample sample = read_row(block.view(), 2);
  EXPECT_EQ(sample["x"].raw().data(), block.view().columns[2].data + 16);
}

TEST(RowsTest, ValuesOfVaryingFieldsOutliveTheCaller) {
  const ElementSpec spec = ElementSpec::single(Dtype::bytes);
  Scratch scratch;
  const ScratchBlock known(spec, 1, scratch);
  const ScratchBlock unknown(unknown_spec(), 1, scratch);
  {
    const std::string gone(100, 'x');
    const Sample view = Tensor::view(Dtype::bytes, {}, std::as_bytes(std::span(gone)), nullptr);
    EXPECT_EQ(write_row(known.view(), 0, view), std::nullopt);
    EXPECT_EQ(write_row(unknown.view(), 0, view), std::nullopt);
  }
  EXPECT_EQ(read_row(known.view(), 0).tensor().text(), std::string(100, 'x'));
  EXPECT_EQ(read_row(unknown.view(), 0).tensor().text(), std::string(100, 'x'));
}

TEST(RowsTest, CopyingRowsCopiesTheirIdentity) {
  Scratch scratch;
  const FilledBlock from(6, scratch);
  const FilledBlock to(4, scratch);
  copy_rows(from.view(), 4, to.view(), 1, 2);
  copy_rows(from.view(), 0, to.view(), 0, 0);
  expect_row(to.view(), 0, 0);
  expect_row(to.view(), 1, 4);
  expect_row(to.view(), 2, 5);
  expect_row(to.view(), 3, 3);
  EXPECT_EQ(to.view().identity.occurrence[1], 204U);
  EXPECT_EQ(to.view().identity.occurrence[3], 203U);
}

TEST(RowsTest, CutRowsAreAViewOfTheSameRows) {
  Scratch scratch;
  const FilledBlock block(6, scratch);
  const BlockView cut = cut_rows(cut_rows(block.view(), 1, 5, scratch), 2, 2, scratch);
  ASSERT_EQ(cut.rows, 2U);
  expect_row(cut, 0, 3);
  expect_row(cut, 1, 4);
  EXPECT_EQ(cut.identity.occurrence[1], 204U);
  EXPECT_EQ(write_row(cut, 0, mixed(50)), std::nullopt);
  EXPECT_EQ(read_row(block.view(), 3)["text"].text(), "50");
  EXPECT_EQ(cut_rows(block.view(), 6, 0, scratch).rows, 0U);
}

TEST(RowsTest, ABlockOfUnknownSpecHoldsWholeSamples) {
  Scratch scratch;
  const ScratchBlock block(unknown_spec(), 3, scratch);
  EXPECT_EQ(write_row(block.view(), 1, mixed(7)), std::nullopt);
  EXPECT_EQ(write_row(block.view(), 2, Tensor::scalar(1.5)), std::nullopt);
  const BlockView cut = cut_rows(block.view(), 1, 2, scratch);
  EXPECT_EQ(read_row(cut, 0)["text"].text(), "7");
  EXPECT_EQ(read_row(cut, 1).tensor().item<double>(), 1.5);
}

TEST(BlockTest, ColumnsAreFoundByPathAndDtype) {
  Scratch scratch;
  const FilledBlock filled(3, scratch);
  const Block block(filled.view());
  EXPECT_THAT(block.column<std::int32_t>("x"), ElementsAre(0, 0, 1, -1, 2, -2));
  EXPECT_TRUE(block.column<float>("none").empty());
  EXPECT_THAT(block.sample_id(), ElementsAre(100, 101, 102));
}

TEST(BlockTest, AWrongPathOrDtypeThrowsAndNamesTheField) {
  Scratch scratch;
  const FilledBlock filled(3, scratch);
  const Block block(filled.view());
  EXPECT_THAT([&] { static_cast<void>(block.column<float>("y")); },
              ThrowsMessage<ConfigError>(HasSubstr(mixed_spec().text())));
  EXPECT_THAT([&] { static_cast<void>(block.column<float>("x")); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("i32[2]"), HasSubstr("f32"))));
  EXPECT_THROW(static_cast<void>(block.column<std::uint8_t>("text")), ConfigError);
}

TEST(RowsTest, AnEmptyListHasTheDtypeOfItsField) {
  const ElementSpec spec =
      ElementSpec::dict({{"boxes", Dtype::f32, {kUnknown, 4}}, {"ids", Dtype::i64, {kUnknown}}});
  Scratch scratch;
  const ScratchBlock block(spec, 1, scratch);
  const Tensor list = Tensor::of(std::vector<double>{});
  EXPECT_EQ(write_row(block.view(), 0, Sample::dict({{"boxes", list}, {"ids", list}})),
            std::nullopt);
  const Sample row = read_row(block.view(), 0);
  EXPECT_EQ(row["boxes"].shape(), (Shape{0, 4}));
  EXPECT_EQ(row["ids"].dtype(), Dtype::i64);
  const Tensor one = Tensor::of(std::vector<double>{1});
  EXPECT_NE(write_row(block.view(), 0, Sample::dict({{"boxes", list}, {"ids", one}})),
            std::nullopt);
}

}  // namespace
}  // namespace penstock
