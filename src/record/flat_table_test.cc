#include "record/flat_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "record/arrow_file_for_tests.h"

namespace penstock {
namespace {

using ::penstock::testing::FlatTableView;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(FlatTableTest, WhatIsSetIsReadAgain) {
  std::vector<FlatTable> parts;
  for (const char* name : {"one", "", "three"})
    parts.push_back(FlatTable().text(0, name).number(2, true));
  const std::string structs("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16);
  const std::string buffer = FlatTable()
                                 .number(0, std::int16_t{-3})
                                 .number(5, std::int64_t{1} << 40)
                                 .table(2, FlatTable())
                                 .number(3, std::uint8_t{7})
                                 .tables(4, parts)
                                 .structs(6, structs, 16)
                                 .structs(7, "", 16)
                                 .buffer();
  EXPECT_EQ(buffer.size() % 8, 0U);
  const auto root = FlatTableView::root(buffer);
  EXPECT_EQ(root.number<std::int16_t>(0), -3);
  EXPECT_FALSE(root.has(1));
  EXPECT_FALSE(root.has(8));
  EXPECT_EQ(root.number<std::int64_t>(5), std::int64_t{1} << 40);
  EXPECT_EQ(root.number<std::uint8_t>(3), 7);
  EXPECT_FALSE(root.table(2).has(0));
  EXPECT_THAT(root.structs(6, 2), ElementsAre(1, 2));
  EXPECT_THAT(root.structs(7, 2), IsEmpty());
  const auto tables = root.tables(4);
  ASSERT_THAT(tables, SizeIs(3));
  EXPECT_EQ(tables[0].text(0), "one");
  EXPECT_EQ(tables[1].text(0), "");
  EXPECT_EQ(tables[2].text(0), "three");
  EXPECT_TRUE(tables[2].number<bool>(2));
}

TEST(FlatTableTest, TheBytesAreThoseOfTheSpecification) {
  // The root's place; nothing; three slots: bytes of the slots, of the table, of the field; the
  // distance to the slots; the field; nothing.
  const std::string buffer = FlatTable().number(0, std::uint32_t{0x11223344}).buffer();
  EXPECT_EQ(buffer,
            std::string("\x10\0\0\0\0\0\0\0\0\0\6\0\x08\0\4\0\6\0\0\0\x44\x33\x22\x11", 24));
}

}  // namespace
}  // namespace penstock
