#include "kernel/unfilter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace penstock {
namespace {

TEST(UnfilterTest, EveryFilterAndPixelSizeGivesWhatTheStandardSays) {
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

TEST(UnfilterTest, PaethIsRightForEveryTripleOfNeighbours) {
  // Rows of two pixels: the second one has all three neighbours.
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
      }
    }
  }
}

}  // namespace
}  // namespace penstock
