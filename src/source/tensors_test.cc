#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "sample/rows.h"
#include "source/source.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor matrix(const std::vector<float>& values, std::int64_t rows) {
  return Tensor::of(std::span<const float>(values),
                    {rows, static_cast<std::int64_t>(values.size()) / rows});
}

std::string identity_of(const Source& source) {
  Digest digest;
  source.identify(digest);
  return digest.text();
}

TEST(TensorSlicesTest, SamplesAreTheRowsOfTheFirstDimension) {
  const auto source =
      make_tensor_slices(Sample::dict({{"x", matrix({0, 1, 10, 11, 20, 21}, 3)},
                                       {"y", Tensor::of(std::vector<std::int64_t>{5, 6, 7})}}),
                         "");
  EXPECT_EQ(source->size(), 3U);
  EXPECT_EQ(source->spec().text(), "{x: f32[2], y: i64[]}");
  Scratch scratch;
  const ScratchBlock out(source->spec(), 3, scratch);
  ASSERT_TRUE(source->decode(std::vector<std::uint64_t>{2, 0, 2}, {}, out.view(), scratch).ok());
  const Block block(out.view());
  EXPECT_THAT(block.column<float>("x"), ElementsAre(20, 21, 0, 1, 20, 21));
  EXPECT_THAT(block.column<std::int64_t>("y"), ElementsAre(7, 5, 7));
}

TEST(TensorSlicesTest, FieldsOfDifferentLengthsAreRefusedWithBothNamesAndLengths) {
  EXPECT_THAT(
      [] {
        make_tensor_slices(Sample::dict({{"x", Tensor::of(std::vector<float>(3))},
                                         {"y", Tensor::of(std::vector<float>(4))}}),
                           "");
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("\"y\" has 4"), HasSubstr("\"x\" has 3"))));
}

TEST(TensorSlicesTest, ScalarsCannotBeSliced) {
  EXPECT_THAT([] { make_tensor_slices(Sample::dict({{"x", Tensor::scalar(1.0F)}}), ""); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("\"x\""), HasSubstr("from_tensors"))));
  EXPECT_THROW(make_tensor_slices(Tensor::bytes("abc"), ""), ConfigError);
  EXPECT_THROW(make_tensor_slices(Sample::dict({}), ""), ConfigError);
  EXPECT_THROW(make_tensor_slices(Sample(), ""), ConfigError);
}

TEST(TensorSlicesTest, NoRowsAndRowsWithoutValuesAreFine) {
  EXPECT_EQ(make_tensor_slices(Tensor::of(std::vector<float>{}), "")->size(), 0U);
  const auto source = make_tensor_slices(Tensor::copy(Dtype::f32, {4, 0}, {}), "");
  EXPECT_EQ(source->size(), 4U);
  Scratch scratch;
  const ScratchBlock out(source->spec(), 2, scratch);
  EXPECT_TRUE(source->decode(std::vector<std::uint64_t>{3, 1}, {}, out.view(), scratch).ok());
}

TEST(TensorsTest, TheSampleIsOneElement) {
  const auto source =
      make_tensors(Sample::tuple({matrix({1, 2, 3, 4}, 2), Tensor::bytes("abc")}), "");
  EXPECT_EQ(source->size(), 1U);
  EXPECT_EQ(source->spec().text(), "(f32[2, 2], bytes[])");
  Scratch scratch;
  const ScratchBlock out(source->spec(), 2, scratch);
  ASSERT_TRUE(source->decode(std::vector<std::uint64_t>{0, 0}, {}, out.view(), scratch).ok());
  for (std::size_t row = 0; row < 2; ++row) {
    const Sample sample = read_row(out.view(), row);
    EXPECT_THAT(sample["0"].values<float>(), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(sample["1"].text(), "abc");
  }
}

TEST(TensorsTest, ASampleWithoutBytesIsRefused) {
  EXPECT_THROW(make_tensors(Sample(), ""), ConfigError);
  EXPECT_THROW(make_tensors(Sample::tuple({}), ""), ConfigError);
  EXPECT_THROW(make_tensors(Tensor(), ""), ConfigError);
}

TEST(TensorsTest, TheIdentityIsThatOfTheData) {
  const std::string first = identity_of(*make_tensor_slices(matrix({1, 2, 3, 4}, 2), "a"));
  EXPECT_EQ(identity_of(*make_tensor_slices(matrix({1, 2, 3, 4}, 2), "b")), first);
  EXPECT_NE(identity_of(*make_tensor_slices(matrix({1, 2, 3, 5}, 2), "a")), first);
  EXPECT_NE(identity_of(*make_tensor_slices(matrix({1, 2, 3, 4}, 4), "a")), first);
  EXPECT_NE(
      identity_of(*make_tensor_slices(Tensor::of(std::vector<std::int32_t>{1, 2, 3, 4}), "a")),
      identity_of(*make_tensor_slices(Tensor::of(std::vector<std::uint32_t>{1, 2, 3, 4}), "a")));
}

}  // namespace
}  // namespace penstock
