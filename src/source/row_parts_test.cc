#include "source/row_parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

TEST(RowPartsTest, EveryRowIsFoundInPartsOfAnySizes) {
  const std::vector<std::vector<std::uint64_t>> all{{1},          {3, 3, 3}, {3, 3, 2},
                                                    {3, 3, 0, 0}, {3, 2, 3}, {2, 3, 3},
                                                    {0, 3, 3},    {3, 0, 3}, {5, 1, 0, 2}};
  for (const auto& sizes : all) {
    RowParts parts;
    std::uint64_t number = 0;
    for (const std::uint64_t rows : sizes) parts.add(rows);
    for (std::size_t part = 0; part < sizes.size(); ++part)
      for (std::uint64_t row = 0; row < sizes[part]; ++row, ++number) {
        const RowParts::Place found = parts.find(number);
        ASSERT_EQ(found.part, part) << "row " << number;
        ASSERT_EQ(found.row, row) << "row " << number;
      }
    EXPECT_EQ(parts.rows(), number);
    EXPECT_EQ(parts.parts(), sizes.size());
  }
}

}  // namespace
}  // namespace penstock
