#include "op/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock {
namespace {

using testing::HasSubstr;

constexpr auto kLongAgo = std::chrono::steady_clock::time_point::min();

/// A gray image of zeros.
Picture zeros(Dtype dtype, Scratch& scratch) {
  Pixels pixels{.width = 20, .height = 20, .channels = 1, .dtype = dtype};
  pixels.stride = 20 * dtype_size(dtype);
  std::byte* const data = scratch.allocate(pixels.stride * 20 + Pixels::kSlack);
  std::fill_n(data, pixels.stride * 20, std::byte{0});
  pixels.data = data;
  return {pixels, scratch};
}

TEST(PictureTest, OperationsAfterTheDeadlineFail) {
  for (const Dtype dtype : {Dtype::u8, Dtype::u16}) {
    Scratch scratch;
    std::vector<std::byte> out(400 * dtype_size(dtype));
    Picture plain = zeros(dtype, scratch);
    ASSERT_TRUE(plain.store(out.data(), dtype, false).ok());
    plain.set_deadline(kLongAgo);
    EXPECT_THAT(plain.store(out.data(), dtype, false).failure().message,
                HasSubstr("longer than the limit"));
    EXPECT_FALSE(plain.pixels().ok());
    Picture resized = zeros(dtype, scratch);
    ASSERT_TRUE(resized.resize({.height = 5, .width = 5}).ok());
    resized.set_deadline(kLongAgo);
    EXPECT_FALSE(resized.store(out.data(), dtype, false).ok());
    Picture floats = zeros(dtype, scratch);
    ASSERT_TRUE(floats.pixels().ok());
    floats.set_deadline(kLongAgo);
    const auto late = floats.store(out.data(), dtype, false);
    ASSERT_FALSE(late.ok());
    EXPECT_THAT(late.failure().remedy, HasSubstr("time_max"));
  }
}

TEST(PictureTest, ALargeImageCountsAgainstTheBudgetDuringItsLifetime) {
  const std::uint64_t size = 5000 * 4000;
  ASSERT_GT(size, DecodeBudget::kCountedBytes);
  const std::string file = "P5 5000 4000 255\n" + std::string(size, 'x');
  const auto bytes = std::as_bytes(std::span(file));
  const auto info = probe_image(bytes);
  ASSERT_TRUE(info);
  Scratch scratch;
  std::vector<std::byte> out(16);
  {
    Picture picture(bytes, *info, {.channels = 1}, scratch);
    ASSERT_TRUE(picture.resize({.height = 4, .width = 4}).ok());
    EXPECT_EQ(DecodeBudget::process().used(), 0U);
    ASSERT_TRUE(picture.store(out.data(), Dtype::u8, false).ok());
    EXPECT_EQ(DecodeBudget::process().used(), size);
  }
  EXPECT_EQ(DecodeBudget::process().used(), 0U);
}

}  // namespace
}  // namespace penstock
