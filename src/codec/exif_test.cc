#include <gtest/gtest.h>

#include "codec/formats.h"
#include "codec/images_for_tests.h"

namespace penstock {
namespace {

int orientation_in(const made::Values& block) {
  return exif_orientation(made::bytes_of(block));
}

TEST(ExifTest, OrientationIsReadInBothByteOrders) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(orientation_in(made::exif_block(orientation, true)), orientation);
    EXPECT_EQ(orientation_in(made::exif_block(orientation, false)), orientation);
  }
}

TEST(ExifTest, DamagedOrUnknownOrientationsCountAsUpright) {
  EXPECT_EQ(orientation_in({}), 1);
  EXPECT_EQ(orientation_in(made::exif_block(0)), 1);
  EXPECT_EQ(orientation_in(made::exif_block(9)), 1);
  const made::Values block = made::exif_block(6);
  for (std::size_t size = 0; size < 22; ++size)
    EXPECT_EQ(orientation_in(
                  made::Values(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(size))),
              1);
  for (std::size_t at = 0; at < 18; ++at) {
    made::Values flipped = block;
    flipped[at] ^= 0xffU;
    EXPECT_LE(orientation_in(flipped), 8) << at;
  }
}

}  // namespace
}  // namespace penstock
