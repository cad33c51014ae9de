#include "kernel/unfilter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace penstock {
namespace {

TEST(UnfilterTest, EveryFilterAndPixelSizeMatchesTheStandard) {
  std::mt19937 random(7);
  for (std::size_t pixel = 1; pixel <= 4; ++pixel) {
    for (std::uint8_t filter = 0; filter <= kPngFiltersMax; ++filter) {
      for (std::size_t width = 1; width < 70; ++width) {
        const std::size_t bytes = width * pixel;
        std::vector<std::uint8_t> row(bytes + kUnfilterSlack);
        std::vector<std::uint8_t> above(bytes + kUnfilterSlack);
        for (auto& each : row) each = static_cast<std::uint8_t>(random());
        for (auto& each : above) each = static_cast<std::uint8_t>(random());
        std::vector<std::uint8_t> expected = row;
        unfilter_row_plainly(filter, expected.data(), above.data(), bytes, pixel);
        unfilter_row(filter, row.data(), above.data(), bytes, pixel);
        ASSERT_EQ(row, expected) << "filter " << int{filter} << ", " << pixel << " bytes, width "
                                 << width;
      }
    }
  }
}

TEST(UnfilterTest, RowsAtOnceEqualRowByRow) {
  std::mt19937 random(11);
  for (std::size_t pixel = 1; pixel <= 4; ++pixel) {
    for (std::size_t width = 1; width < 40; ++width) {
      const std::size_t bytes = width * pixel;
      const std::size_t stride = 1 + bytes + random() % 3 * pixel;  // a crop: pixels to the right
      const std::size_t count = 1 + random() % 19;
      std::vector<std::uint8_t> image(stride * count + kUnfilterSlack);
      std::vector<std::uint8_t> above(bytes + kUnfilterSlack);
      for (auto& each : image) each = static_cast<std::uint8_t>(random());
      for (auto& each : above) each = static_cast<std::uint8_t>(random());
      for (std::size_t y = 0; y < count; ++y)  // mostly Paeth, so that there are runs of it
        image[y * stride] = static_cast<std::uint8_t>(random() % 6 == 0 ? random() % 5 : 4);
      std::vector<std::uint8_t> expected = image;
      const std::uint8_t* upper = above.data();
      for (std::size_t y = 0; y < count; ++y) {
        std::uint8_t* const row = expected.data() + y * stride;
        unfilter_row_plainly(row[0], row + 1, upper, bytes, pixel);
        upper = row + 1;
      }
      unfilter_rows(image.data(), stride, count, above.data(), bytes, pixel);
      ASSERT_EQ(image, expected) << pixel << " bytes, width " << width << ", " << count << " rows";
    }
  }
}

/// The last pixel of a Paeth row of four pixels, if those before it are all `left`.
int chosen_among_four_rows(int left, int up, int corner) {
  constexpr std::size_t kStride = 1 + 4 * 3;
  std::array<std::uint8_t, 4 * 3 + kUnfilterSlack> above{};
  std::fill_n(above.begin(), 9, static_cast<std::uint8_t>(corner));
  std::fill_n(above.begin() + 9, 3, static_cast<std::uint8_t>(up));
  std::array<std::uint8_t, 4 * kStride + kUnfilterSlack> image{};
  for (std::size_t y = 0; y < 4; ++y) image.at(y * kStride) = 4;
  std::fill_n(image.begin() + 1, 3, static_cast<std::uint8_t>(left - corner));
  unfilter_rows(image.data(), kStride, 4, above.data(), 12, 3);
  return image[10];
}

TEST(UnfilterTest, PaethIsCorrectForEveryTripleOfNeighbors) {
  // Rows of two pixels: the second one has all three neighbors.
  for (int left = 0; left < 256; ++left) {
    for (int up = 0; up < 256; ++up) {
      for (int corner = 0; corner < 256; corner += 3) {
        const auto byte = [](int value) { return static_cast<std::uint8_t>(value); };
        const std::vector<std::uint8_t> above = {
            byte(corner), byte(corner + 1), byte(corner + 2), byte(up), byte(up), byte(up), 0, 0};
        std::vector<std::uint8_t> row = {
            byte(left - corner), byte(left - corner - 1), byte(left - corner - 2), 0, 0, 0, 9, 9};
        std::vector<std::uint8_t> expected = row;
        unfilter_row_plainly(4, expected.data(), above.data(), 6, 3);
        unfilter_row(4, row.data(), above.data(), 6, 3);
        if (row != expected) FAIL() << left << " " << up << " " << corner;
        EXPECT_EQ(chosen_among_four_rows(left, up, corner), row[3]);
        if (HasFailure()) FAIL() << left << " " << up << " " << corner;
      }
    }
  }
}

}  // namespace
}  // namespace penstock
