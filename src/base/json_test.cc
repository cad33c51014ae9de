#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonTest, InvalidJsonReturnsNothing) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\":1}x", "nul", "1 2", "\"\xff\"", "1e999"})
    EXPECT_FALSE(parse_json(text)) << text;
}

TEST(JsonTest, NullIsAValue) {
  EXPECT_EQ(parse_json("null"), Json());
}

TEST(JsonTest, EqualObjectsHaveEqualText) {
  EXPECT_EQ(parse_json(R"({"b": 1, "a": [true]})").value_or(Json()).dump(),
            R"({"a":[true],"b":1})");
}

TEST(JsonTest, WholeNumbersOf64BitsStayExact) {
  const std::string text = "[18446744073709551615,-9223372036854775808]";
  EXPECT_EQ(parse_json(text).value_or(Json()).dump(), text);
}

TEST(JsonTest, OnlyWholeNumbersInRangeAreRead) {
  EXPECT_EQ(whole_number<std::uint64_t>(Json(UINT64_MAX)), UINT64_MAX);
  EXPECT_EQ(whole_number<std::int64_t>(Json(INT64_MIN)), INT64_MIN);
  for (const char* const text :
       {"1.8446744073709552e19", "1.5", "-1", "4294967296", "null", "\"1\""})
    EXPECT_THROW((void)whole_number<std::uint32_t>(*parse_json(text)), Json::exception) << text;
  EXPECT_EQ(whole_numbers<int>(*parse_json("[1, -2]")), (std::vector<int>{1, -2}));
  EXPECT_THROW((void)whole_numbers<int>(*parse_json("[1, 1e30]")), Json::exception);
  EXPECT_THROW((void)whole_numbers<int>(*parse_json("{}")), Json::exception);
}

TEST(JsonTest, NestsUpTo64AndNoDeeper) {
  EXPECT_TRUE(parse_json(nested(64)));
  EXPECT_FALSE(parse_json(nested(65)));
  EXPECT_FALSE(parse_json(nested(1'000'000)));
}

}  // namespace
}  // namespace penstock
