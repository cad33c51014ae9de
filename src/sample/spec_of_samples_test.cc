#include "sample/spec_of_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "penstock/error.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Sample of_size(std::int64_t rows, std::int64_t columns) {
  const std::vector<float> values(static_cast<std::size_t>(rows * columns));
  return Sample::dict({{"x", Tensor::of(std::span<const float>(values), {rows, columns})},
                       {"text", Tensor::bytes("a", Dtype::string)}});
}

TEST(SpecOfSamplesTest, SizesThatDifferAreUnknown) {
  const std::vector<Sample> equal{of_size(2, 3), of_size(2, 3)};
  EXPECT_EQ(spec_of_samples(equal).text(), "{text: string[], x: f32[2, 3]}");
  const std::vector<Sample> rows{of_size(2, 3), of_size(2, 3), of_size(0, 3), of_size(2, 3)};
  EXPECT_EQ(spec_of_samples(rows).text(), "{text: string[], x: f32[?, 3]}");
  const std::vector<Sample> both{of_size(2, 3), of_size(1, 3), of_size(2, 1)};
  EXPECT_EQ(spec_of_samples(both).text(), "{text: string[], x: f32[?, ?]}");
}

TEST(SpecOfSamplesTest, SamplesOfDifferentKindsAreRefused) {
  const auto refuses = [](const Sample& one, const Sample& other, const char* text) {
    EXPECT_THAT([&] { spec_of_samples(std::vector{one, other}); },
                ThrowsMessage<ConfigError>(HasSubstr(text)));
  };
  const Sample number = Sample::dict({{"x", Tensor::scalar(1)}});
  refuses(number, Sample::dict({{"y", Tensor::scalar(1)}}), "different fields");
  refuses(number, Sample::dict({{"x", Tensor::scalar(1.5)}}), "i32[] in one sample and f64[]");
  refuses(number, Sample::dict({{"x", Tensor::of(std::vector{1})}}), "and i32[1] in another");
}

}  // namespace
}  // namespace penstock
