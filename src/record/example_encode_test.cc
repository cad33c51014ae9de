#include "record/example_encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "record/example.h"
#include "record/example_messages_for_tests.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using messages::entry;
using messages::example;
using messages::floats;
using messages::framed;
using messages::ints;
using messages::texts;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(EncodeExampleTest, TheMessageIsThatOfOtherWriters) {
  const Sample sample = Sample::dict(
      {{"image", Sample::dict({{"encoded", Tensor::bytes("JPEG")}, {"empty", Tensor::bytes("")}})},
       {"label/text", Tensor::bytes("cat", Dtype::string)},
       {"pair",
        Sample::tuple({Tensor::scalar(std::int32_t{-3}), Tensor::of(std::vector{1.5F, 2.0F})})},
       {"none", Tensor::of(std::vector<float>{})}});
  EXPECT_EQ(encode_example(sample),
            example({entry("image/empty", texts({""})), entry("image/encoded", texts({"JPEG"})),
                     entry("label/text", texts({"cat"})), entry("none", floats({})),
                     entry("pair/0", ints({-3})), entry("pair/1", floats({1.5F, 2}))}));
}

TEST(EncodeExampleTest, ASampleWithoutNamesIsCalledValue) {
  EXPECT_EQ(encode_example(Tensor::scalar(std::int64_t{300})),
            example({entry("value", ints({300}))}));
  EXPECT_EQ(encode_example(Sample::tuple({Tensor::scalar(true), Tensor::scalar(Half(0.5F))})),
            example({entry("0", ints({1})), entry("1", floats({0.5F}))}));
}

TEST(EncodeExampleTest, WhatIsEncodedIsDecodedAgain) {
  const std::vector<std::int64_t> numbers{0, 1, -1, 127, 128, INT64_MAX, INT64_MIN};
  const Sample sample = Sample::dict({
      {"i64", Tensor::of(numbers)},
      {"u64", Tensor::scalar(std::uint64_t{INT64_MAX})},
      {"i8", Tensor::scalar(std::int8_t{-128})},
      {"bf16", Tensor::scalar(BFloat16(2.5F))},
      {"f32", Tensor::of(std::span<const float>(std::vector<float>{1, 2, 3, 4, 5, 6}), {2, 3})},
      {"text", Tensor::bytes("\xc3\xa9", Dtype::string)},
  });
  std::vector<ExampleFeature> features;
  for (const FieldSpec& field : ElementSpec::of(sample).fields)
    features.push_back({field.path, field.dtype, field.shape});
  const auto decoder = make_example_decoder(features);
  Scratch scratch;
  const ScratchBlock block(decoder->spec(), 1, scratch);
  ASSERT_TRUE(decoder->decode({framed(encode_example(sample))}, block.view(), 0, scratch).ok());
  const Sample row = read_row(block.view(), 0);
  ASSERT_EQ(row.structure(), sample.structure());
  for (std::size_t i = 0; i < sample.leaves().size(); ++i)
    EXPECT_EQ(row.leaves()[i].text(), sample.leaves()[i].text()) << features[i].name;
}

TEST(EncodeExampleTest, ValuesThatWouldChangeAreRefused) {
  EXPECT_THAT([] { (void)encode_example(Sample::dict({{"x", Tensor::scalar(0.1)}})); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("\"x\" is f64"), HasSubstr("cast"))));
  EXPECT_THAT([] { (void)encode_example(Tensor::scalar(std::uint64_t{1} << 63)); },
              ThrowsMessage<SampleError>(
                  AllOf(HasSubstr("9223372036854775808 does not fit int64"), HasSubstr("value"))));
}

}  // namespace
}  // namespace penstock
