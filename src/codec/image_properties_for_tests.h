#pragma once
// Properties that hold for every format, for tests.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>

#include "codec/codec.h"
#include "codec/images_for_tests.h"

namespace penstock::made {

/// A few regions at each place of the image: one pixel, a small one, everything to the right and
/// below, everything to the left and above. Each must equal that part of the full decode.
inline void expect_regions_equal_crops(const Values& file, DecodeRequest request = {},
                                       std::int64_t every = 1) {
  const Decoded full = decode(file, request);
  ASSERT_EQ(full.message, "");
  const std::int64_t width = full.info.width;
  const std::int64_t height = full.info.height;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = y % every; x < width; x += every) {
      for (const Region part :
           {Region{x, y, 1, 1}, Region{x, y, std::min<std::int64_t>(5, width - x), 1},
            Region{x, y, std::min<std::int64_t>(19, width - x),
                   std::min<std::int64_t>(17, height - y)},
            Region{x, y, width - x, height - y}, Region{0, 0, x + 1, y + 1}}) {
        request.region = part;
        const Decoded decoded = decode(file, request);
        ASSERT_EQ(decoded.message, "");
        ASSERT_EQ(decoded.values, crop(full, part))
            << part.width << " x " << part.height << " at " << part.x << ", " << part.y << " of "
            << width << " x " << height;
      }
    }
  }
}

/// No prefix of `file` decodes, and none does harm. Bytes after the first `whole` may be missing.
inline void expect_truncations_fail(const Values& file, std::size_t whole = 0) {
  for (std::size_t size = 0; size < (whole == 0 ? file.size() : whole); ++size) {
    // A separate copy, so that the address sanitizer detects a read past the end.
    const Values cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    const Decoded decoded = decode(cut, {.channels = 0});
    ASSERT_NE(decoded.message, "") << "cut after " << size << " of " << file.size();
  }
}

/// Any change of the bytes gives an image or a Failure. `repair` may correct checksums.
inline void expect_flips_do_no_harm(const Values& file, int rounds,
                                    const std::function<void(Values&)>& repair = {}) {
  std::mt19937 random(11);
  for (int round = 0; round < rounds; ++round) {
    Values damaged = file;
    const unsigned flips = 1 + random() % 4;
    for (unsigned i = 0; i < flips; ++i)
      damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    if (repair) repair(damaged);
    const DecodeRequest request{.channels = round % 2 == 0 ? 3 : 0,
                                .limits = {.pixels_max = 1U << 20U}};
    const Decoded decoded = decode(damaged, request);
    if (decoded.message.empty()) {
      ASSERT_GT(decoded.pixels.width, 0);
    }
  }
}

}  // namespace penstock::made
