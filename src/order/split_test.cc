#include "order/split.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace penstock {
namespace {

TEST(SplitOrderTest, TheFirstPartHasTheRoundedFractionOfAllSizes) {
  EXPECT_EQ(first_part_size(10, 0.8), 8U);
  EXPECT_EQ(first_part_size(10, 0.25), 3U) << "a half is rounded up";
  EXPECT_EQ(first_part_size(10, 0.35), 4U);
  EXPECT_EQ(first_part_size(3, 0.1), 0U);
  EXPECT_EQ(first_part_size(7, 1.0), 7U);
  EXPECT_EQ(first_part_size(0, 0.5), 0U);
  EXPECT_EQ(first_part_size(1ULL << 62, 1.0), 1ULL << 62);
  EXPECT_EQ(first_part_size(1ULL << 62, 0.5), 1ULL << 61);
}

TEST(SplitOrderTest, PartsAreExactAndComplementary) {
  for (const std::uint64_t size : {1ULL, 2ULL, 10ULL, 63ULL, 64ULL, 65ULL, 1023ULL, 5000ULL})
    for (const double fraction : {0.1, 0.5, 0.8, 0.99}) {
      const auto first = choose_part(size, {fraction, 3, false});
      const auto rest = choose_part(size, {fraction, 3, true});
      ASSERT_EQ(first->count(), first_part_size(size, fraction)) << size;
      ASSERT_EQ(first->count() + rest->count(), size);
      for (std::uint64_t i = 0, a = 0, b = 0; i < size; ++i) {
        const bool in_first = a < first->count() && (*first)[a] == i;
        const bool in_rest = b < rest->count() && (*rest)[b] == i;
        ASSERT_NE(in_first, in_rest) << i << " of " << size;
        (in_first ? a : b) += 1;
      }
    }
}

TEST(SplitOrderTest, EverySeedChoosesOtherElements) {
  EXPECT_EQ(choose_part(1000, {0.5, 1})->digest(), choose_part(1000, {0.5, 1})->digest());
  EXPECT_NE(choose_part(1000, {0.5, 1})->digest(), choose_part(1000, {0.5, 2})->digest());
}

}  // namespace
}  // namespace penstock
