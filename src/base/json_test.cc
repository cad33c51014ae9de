#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonTest, WhatIsNotJsonIsNothing) {
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

TEST(JsonTest, NestsUpTo64AndNoDeeper) {
  EXPECT_TRUE(parse_json(nested(64)));
  EXPECT_FALSE(parse_json(nested(65)));
  EXPECT_FALSE(parse_json(nested(1'000'000)));
}

}  // namespace
}  // namespace penstock
