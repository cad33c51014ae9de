#include "kernel/gather.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/mix.h"

namespace penstock {
namespace {

// Around the numbers of prefetched rows, 4 and 24.
constexpr std::size_t kCounts[] = {0, 1, 3, 4, 5, 23, 24, 25, 100};
constexpr std::size_t kRows = 50;

TEST(GatherTest, EachRowComesFromItsNumberAtEverySizeAndCount) {
  for (std::size_t row_bytes = 0; row_bytes <= 130; ++row_bytes) {
    // Vectors of exactly the needed size, so that a sanitizer detects accesses outside.
    std::vector<std::byte> rows(kRows * row_bytes);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(mix(i));
    for (const std::size_t count : kCounts) {
      std::vector<std::uint64_t> numbers(count);
      for (std::size_t i = 0; i < count; ++i) numbers[i] = mix(i + count) % kRows;
      std::vector<std::byte> expected;
      for (const std::uint64_t number : numbers) {
        const auto first = rows.begin() + static_cast<std::ptrdiff_t>(number * row_bytes);
        expected.insert(expected.end(), first, first + static_cast<std::ptrdiff_t>(row_bytes));
      }
      std::vector<std::byte> out(count * row_bytes);
      gather_rows(rows.data(), row_bytes, numbers, out.data());
      ASSERT_EQ(out, expected) << row_bytes << " bytes, " << count << " rows";

      // The same rows by their addresses, in reverse.
      std::vector<const std::byte*> sources(count);
      std::vector<std::uint32_t> places(count);
      for (std::size_t i = 0; i < count; ++i) {
        sources[i] = rows.data() + numbers[count - 1 - i] * row_bytes;
        places[i] = static_cast<std::uint32_t>(count - 1 - i);
      }
      std::vector<std::byte> scattered(count * row_bytes);
      scatter_rows_from(sources, row_bytes, places, scattered.data());
      ASSERT_EQ(scattered, expected) << row_bytes << " bytes, " << count << " rows";
    }
  }
}

TEST(GatherTest, RowsMayRepeatAndComeFromBothEnds) {
  const std::vector<std::uint64_t> rows{10, 11, 12};
  const std::vector<std::uint64_t> numbers{2, 0, 2, 2, 0};
  std::vector<std::uint64_t> out(5);
  gather_rows(reinterpret_cast<const std::byte*>(rows.data()), 8, numbers,
              reinterpret_cast<std::byte*>(out.data()));
  EXPECT_EQ(out, (std::vector<std::uint64_t>{12, 10, 12, 12, 10}));
}

TEST(GatherTest, RowsNeedNoAlignment) {
  std::vector<std::byte> rows(1 + 4 * 8);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i);
  std::vector<std::byte> out(1 + 2 * 8);
  gather_rows(rows.data() + 1, 8, std::vector<std::uint64_t>{3, 1}, out.data() + 1);
  EXPECT_EQ(std::memcmp(out.data() + 1, rows.data() + 25, 8), 0);
  EXPECT_EQ(std::memcmp(out.data() + 9, rows.data() + 9, 8), 0);
}

}  // namespace
}  // namespace penstock
