#include "codec/pixels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "codec/images_for_tests.h"

namespace penstock {
namespace {

using made::Values;

Pixels view(const Values& values, std::int64_t width, std::int64_t height, int channels,
            Dtype dtype = Dtype::u8) {
  return {.data = reinterpret_cast<const std::byte*>(values.data()),
          .width = width,
          .height = height,
          .channels = channels,
          .dtype = dtype,
          .stride = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels) *
                    dtype_size(dtype)};
}

Values turned_values(int orientation) {
  // a b c
  // d e f
  static const Values kStored = {'a', 'b', 'c', 'd', 'e', 'f'};
  Scratch scratch;
  return made::packed(turned(view(kStored, 3, 2, 1), orientation_of(orientation), scratch));
}

TEST(PixelsTest, AllEightOrientationsFollowTheStandard) {
  const auto text = [](int orientation) {
    const Values values = turned_values(orientation);
    return std::string(values.begin(), values.end());
  };
  EXPECT_EQ(text(1), "abcdef");
  EXPECT_EQ(text(2), "cbafed");  // left and right swapped
  EXPECT_EQ(text(3), "fedcba");  // upside down
  EXPECT_EQ(text(4), "defabc");  // top and bottom swapped
  EXPECT_EQ(text(5), "adbecf");  // mirrored along the diagonal
  EXPECT_EQ(text(6), "daebfc");  // a quarter to the right
  EXPECT_EQ(text(7), "fcebda");  // mirrored along the other diagonal
  EXPECT_EQ(text(8), "cfbead");  // a quarter to the left
}

TEST(PixelsTest, EveryPixelSizeTurnsAsOneByteDoes) {
  constexpr std::int64_t kWidth = 41;
  constexpr std::int64_t kHeight = 67;
  Values places(kWidth * kHeight);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint8_t>(i * 7);
  Scratch scratch;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Orientation turn = orientation_of(orientation);
    const Values expected = made::packed(turned(view(places, kWidth, kHeight, 1), turn, scratch));
    for (const Dtype dtype : {Dtype::u8, Dtype::u16}) {
      for (int channels = 1; channels <= 4; ++channels) {
        const std::size_t bytes = static_cast<std::size_t>(channels) * dtype_size(dtype);
        Values wide(places.size() * bytes);
        for (std::size_t i = 0; i < wide.size(); ++i)
          wide[i] = static_cast<std::uint8_t>(places[i / bytes] + i % bytes);
        const Values seen =
            made::packed(turned(view(wide, kWidth, kHeight, channels, dtype), turn, scratch));
        ASSERT_EQ(seen.size(), expected.size() * bytes);
        for (std::size_t i = 0; i < seen.size(); ++i)
          ASSERT_EQ(seen[i], static_cast<std::uint8_t>(expected[i / bytes] + i % bytes));
      }
    }
  }
}

TEST(PixelsTest, ADisplayedRegionMapsToTheStoredRegion) {
  constexpr std::int64_t kWidth = 7;
  constexpr std::int64_t kHeight = 5;
  Values places(kWidth * kHeight);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint8_t>(i);
  Scratch scratch;
  const Pixels stored = view(places, kWidth, kHeight, 1);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Orientation turn = orientation_of(orientation);
    const Pixels full = turned(stored, turn, scratch);
    const made::Decoded seen{.pixels = full, .values = made::packed(full)};
    for (std::int64_t y = 0; y < full.height; ++y) {
      for (std::int64_t x = 0; x < full.width; ++x) {
        const Region part{x, y, full.width - x, full.height - y};
        const Region where = stored_region(part, turn, kWidth, kHeight);
        Pixels cut = stored;
        cut.data += where.y * kWidth + where.x;
        cut.width = where.width;
        cut.height = where.height;
        ASSERT_EQ(made::packed(turned(cut, turn, scratch)), made::crop(seen, part)) << orientation;
      }
    }
  }
}

template <typename T>
std::vector<T> converted(const std::vector<T>& values, int from, int to) {
  Scratch scratch;
  const Pixels pixels{.data = reinterpret_cast<const std::byte*>(values.data()),
                      .width = 1,
                      .height = static_cast<std::int64_t>(values.size()) / from,
                      .channels = from,
                      .dtype = kDtypeOf<T>,
                      .stride = static_cast<std::size_t>(from) * sizeof(T)};
  const Pixels made = with_channels(pixels, to, scratch);
  const auto* data = reinterpret_cast<const T*>(made.data);
  return {data, data + made.height * to};
}

TEST(PixelsTest, ChannelsAreConverted) {
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(converted<std::uint8_t>({7, 9}, 1, 3), (Bytes{7, 7, 7, 9, 9, 9}));
  EXPECT_EQ(converted<std::uint8_t>({7}, 1, 2), (Bytes{7, 255}));
  EXPECT_EQ(converted<std::uint8_t>({7}, 1, 4), (Bytes{7, 7, 7, 255}));
  EXPECT_EQ(converted<std::uint8_t>({7, 100}, 2, 1), (Bytes{7}));
  EXPECT_EQ(converted<std::uint8_t>({7, 100}, 2, 3), (Bytes{7, 7, 7}));
  EXPECT_EQ(converted<std::uint8_t>({7, 100}, 2, 4), (Bytes{7, 7, 7, 100}));
  EXPECT_EQ(converted<std::uint8_t>({1, 2, 3}, 3, 4), (Bytes{1, 2, 3, 255}));
  EXPECT_EQ(converted<std::uint8_t>({1, 2, 3, 4}, 4, 3), (Bytes{1, 2, 3}));
  EXPECT_EQ(converted<std::uint8_t>({100, 200, 50}, 3, 1), (Bytes{153}));
  EXPECT_EQ(converted<std::uint8_t>({255, 255, 255, 9}, 4, 1), (Bytes{255}));
  EXPECT_EQ(converted<std::uint8_t>({100, 200, 50, 9}, 4, 2), (Bytes{153, 9}));
}

TEST(PixelsTest, SixteenBitsKeepTheirPrecision) {
  using Words = std::vector<std::uint16_t>;
  EXPECT_EQ(converted<std::uint16_t>({65535, 65535, 65535}, 3, 1), (Words{65535}));
  EXPECT_EQ(converted<std::uint16_t>({1000}, 1, 4), (Words{1000, 1000, 1000, 65535}));
}

TEST(PixelsTest, ValuesOfOtherDtypesAreCopiedButNotComputed) {
  EXPECT_EQ(converted<float>({1.5F, 2.5F}, 1, 3),
            (std::vector<float>{1.5F, 1.5F, 1.5F, 2.5F, 2.5F, 2.5F}));
  EXPECT_EQ(converted<double>({1, 2, 3, 4}, 4, 3), (std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(can_convert_channels(Dtype::f32, 2, 1));
  EXPECT_FALSE(can_convert_channels(Dtype::f32, 3, 1));
  EXPECT_FALSE(can_convert_channels(Dtype::f32, 3, 4));
  EXPECT_TRUE(can_convert_channels(Dtype::u8, 3, 4));
}

}  // namespace
}  // namespace penstock
