#include "kernel/pixels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/mix.h"

namespace penstock {
namespace {

std::vector<float> quads(std::size_t count, float white) {
  std::vector<float> row(4 * count);
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<float>(mix(i) % 1001) / 1000 * white;
  return row;
}

TEST(PixelsTest, WideningKeepsValuesAndMirrorsPixels) {
  for (int channels = 1; channels <= 4; ++channels) {
    std::vector<std::uint8_t> in;
    for (int i = 0; i < 5 * channels; ++i) in.push_back(static_cast<std::uint8_t>(i * 3));
    std::vector<float> plain(20);
    std::vector<float> mirrored(20);
    const auto* const bytes = reinterpret_cast<const std::byte*>(in.data());
    widen_pixels(bytes, Dtype::u8, channels, 5, false, plain.data());
    widen_pixels(bytes, Dtype::u8, channels, 5, true, mirrored.data());
    for (int x = 0; x < 5; ++x)
      for (int c = 0; c < channels; ++c) {
        EXPECT_EQ(plain[static_cast<std::size_t>(4 * x + c)], (x * channels + c) * 3);
        EXPECT_EQ(mirrored[static_cast<std::size_t>(4 * (4 - x) + c)], (x * channels + c) * 3);
      }
  }
}

TEST(PixelsTest, StoringRoundsAndClampsIntegers) {
  const std::vector<float> row{-3, 0.49F, 0.5F, 0, 254.5F, 255, 300, 0};
  std::vector<std::uint8_t> out(6);
  store_pixels(row.data(), 2, 3, Dtype::u8, reinterpret_cast<std::byte*>(out.data()), 0);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0, 0, 1, 255, 255, 255}));
}

TEST(PixelsTest, PlanesHoldTheSameValuesAsInterleavedOnes) {
  for (int channels = 1; channels <= 4; ++channels) {
    const std::size_t count = 37;
    const auto row = quads(count, 255);
    const auto width = static_cast<std::size_t>(channels);
    std::vector<float> interleaved(count * width);
    std::vector<float> planes(count * width);
    store_pixels(row.data(), count, channels, Dtype::f32,
                 reinterpret_cast<std::byte*>(interleaved.data()), 0);
    store_pixels(row.data(), count, channels, Dtype::f32,
                 reinterpret_cast<std::byte*>(planes.data()), count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t c = 0; c < width; ++c) {
        ASSERT_EQ(interleaved[i * width + c], row[4 * i + c]);
        ASSERT_EQ(planes[c * count + i], row[4 * i + c]);
      }
  }
}

TEST(PixelsTest, AFullTurnOfTheHueChangesNothingAndHalfATurnSwapsOpposites) {
  auto row = quads(50, 255);
  const auto before = row;
  turn_hue(row.data(), 50, 1, 255);
  for (std::size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], before[i], 0.01F);
  std::vector<float> red{255, 0, 0, 0};
  turn_hue(red.data(), 1, 0.5F, 255);
  EXPECT_NEAR(red[0], 0, 0.01F);
  EXPECT_NEAR(red[1], 255, 0.01F);
  EXPECT_NEAR(red[2], 255, 0.01F);
}

TEST(PixelsTest, HalfATurnTwiceIsTheIdentity) {
  auto row = quads(50, 1);
  const auto before = row;
  turn_hue(row.data(), 50, 0.3F, 1);
  turn_hue(row.data(), 50, -0.3F, 1);
  for (std::size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], before[i], 1e-4F);
}

TEST(PixelsTest, NoSaturationIsGrayAndOneIsNoChange) {
  auto row = quads(20, 255);
  const auto before = row;
  saturate_pixels(row.data(), 20, 1);
  for (std::size_t i = 0; i < row.size(); ++i) ASSERT_NEAR(row[i], before[i], 1e-3F);
  saturate_pixels(row.data(), 20, 0);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_FLOAT_EQ(row[4 * i], row[4 * i + 1]);
    EXPECT_FLOAT_EQ(row[4 * i], row[4 * i + 2]);
  }
}

}  // namespace
}  // namespace penstock
