#include "record/csv_values.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace penstock {
namespace {

template <typename T>
T value_of(std::string_view text) {
  T value{};
  EXPECT_EQ(parse_text_value(text, kDtypeOf<T>, reinterpret_cast<std::byte*>(&value)),
            TextValue::good)
      << text;
  return value;
}
TextValue result_of(std::string_view text, Dtype dtype) {
  std::byte to[8];
  return parse_text_value(text, dtype, to);
}

TEST(CsvValuesTest, NumbersOfAllTypesAreRead) {
  EXPECT_EQ(value_of<std::int64_t>("-9223372036854775808"),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(value_of<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(value_of<std::int8_t>("-128"), -128);
  EXPECT_EQ(value_of<std::uint8_t>("+255"), 255);
  EXPECT_EQ(value_of<float>("0.1"), 0.1F);
  EXPECT_EQ(value_of<double>("+1e-3"), 1e-3);
  EXPECT_EQ(value_of<double>("5."), 5.0);
  EXPECT_EQ(value_of<double>("-.5"), -0.5);
  EXPECT_EQ(value_of<double>("-Infinity"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(value_of<float>("inf"), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(value_of<float>("NaN")));
  EXPECT_EQ(static_cast<float>(value_of<Half>("1.5")), 1.5F);
  EXPECT_EQ(static_cast<float>(value_of<BFloat16>("-2")), -2.0F);
  for (const char* const yes : {"true", "True", "TRUE", "1"}) EXPECT_TRUE(value_of<bool>(yes));
  for (const char* const no : {"false", "False", "FALSE", "0"}) EXPECT_FALSE(value_of<bool>(no));
}

TEST(CsvValuesTest, OtherTextsAreNoNumbers) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text :
       {""sv, "-"sv, "+"sv, "+-1"sv, "--1"sv, "1 2"sv, "1,5"sv, "1_000"sv, "x"sv, "1x"sv, "0x10"sv,
        "1\0"sv, "\0"sv, "nan(1)"sv, "1e"sv, "e5"sv, "."sv, " 1"sv, "\xD9\xA1"sv}) {
    EXPECT_EQ(result_of(text, Dtype::f64), TextValue::no_value) << text;
    EXPECT_EQ(result_of(text, Dtype::i64), TextValue::no_value) << text;
    EXPECT_EQ(result_of(text, Dtype::boolean), TextValue::no_value) << text;
  }
  for (const char* const text : {"1.0", "1e3", "nan"})
    EXPECT_EQ(result_of(text, Dtype::i64), TextValue::no_value) << text;
  EXPECT_EQ(result_of("2", Dtype::boolean), TextValue::no_value);
}

TEST(CsvValuesTest, NumbersThatDoNotFitAreOutOfRangeAndTinyOnesAreZero) {
  EXPECT_EQ(result_of("9223372036854775808", Dtype::i64), TextValue::out_of_range);
  EXPECT_EQ(result_of("18446744073709551616", Dtype::u64), TextValue::out_of_range);
  EXPECT_EQ(result_of("-1", Dtype::u64), TextValue::out_of_range);
  EXPECT_EQ(result_of("256", Dtype::u8), TextValue::out_of_range);
  EXPECT_EQ(result_of("1e39", Dtype::f32), TextValue::out_of_range);
  EXPECT_EQ(result_of("70000", Dtype::f16), TextValue::out_of_range);
  for (const char* const large : {"1e400", "-1e400", "1e99999999999999999999"})
    EXPECT_EQ(result_of(large, Dtype::f64), TextValue::out_of_range) << large;
  EXPECT_EQ(result_of(std::string(400, '9'), Dtype::f64), TextValue::out_of_range);
  EXPECT_EQ(result_of("0." + std::string(400, '9') + "e400", Dtype::f64), TextValue::out_of_range);
  for (const char* const tiny : {"1e-400", "123456e-99999999999999999999", "0e9999999999999999999"})
    EXPECT_EQ(value_of<double>(tiny), 0.0) << tiny;
  EXPECT_EQ(value_of<double>("0." + std::string(400, '0') + "1"), 0.0);
  EXPECT_TRUE(std::signbit(value_of<double>("-1e-400")));
  EXPECT_EQ(value_of<double>("5e-324"), 5e-324);
  EXPECT_EQ(value_of<double>(std::string(310, '9').append("e-10")), 1e300);
}

TEST(CsvValuesTest, ShortNumbersAreTheSameAsOthers) {
  std::mt19937_64 draw(1);  // NOLINT: the same each time
  int short_ones = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = draw() % 2 == 0 ? "-" : "";
    const std::size_t digits = 1 + draw() % 20;
    for (std::size_t d = 0; d < digits; ++d) text += static_cast<char>('0' + draw() % 10);
    std::int64_t whole = 0;
    const char* end = read_short_integer(text.data(), text.data() + text.size(), whole);
    if (end == text.data() + text.size()) {
      ASSERT_EQ(whole, value_of<std::int64_t>(text));
    }
    if (draw() % 4 != 0) text.insert(text.size() - draw() % (digits + 1), 1, '.');
    double value = 0;
    end = read_short_decimal(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size()) continue;
    ++short_ones;
    ASSERT_EQ(value, value_of<double>(text)) << text;
    ASSERT_EQ(std::signbit(value), text.front() == '-');
  }
  EXPECT_GT(short_ones, 100'000);
}

TEST(CsvValuesTest, ShortNumbersEndWhereTheyEnd) {
  const std::string text = "-12.5,7";
  std::int64_t whole = 0;
  double value = 0;
  EXPECT_EQ(read_short_integer(text.data(), text.data() + text.size(), whole), text.data() + 3);
  EXPECT_EQ(whole, -12);
  EXPECT_EQ(read_short_decimal(text.data(), text.data() + text.size(), value), text.data() + 5);
  EXPECT_EQ(value, -12.5);
  for (const std::string_view none : {"", "-", ".", "-.", "x", "+1"}) {
    const char* const end = none.data() + none.size();
    EXPECT_EQ(read_short_decimal(none.data(), end, value), nullptr) << none;
    EXPECT_EQ(read_short_integer(none.data(), end, whole), nullptr) << none;
  }
}

Dtype guess_of(const std::vector<std::string>& texts) {
  TypeGuess guess;
  for (const std::string& text : texts) guess.add(text);
  return guess.dtype(Dtype::f32).value();
}

TEST(TypeGuessTest, TheNarrowestTypeOfAllTextsIsTaken) {
  EXPECT_EQ(guess_of({"1", "-2", "+3", "007"}), Dtype::i64);
  EXPECT_EQ(guess_of({"1", "18446744073709551615"}), Dtype::u64);
  EXPECT_EQ(guess_of({"-1", "18446744073709551615"}), Dtype::f32);
  EXPECT_EQ(guess_of({"1", "18446744073709551616"}), Dtype::f32);
  EXPECT_EQ(guess_of({"-9223372036854775809"}), Dtype::f32);
  EXPECT_EQ(guess_of({"1", "2.5"}), Dtype::f32);
  EXPECT_EQ(guess_of({"1e400"}), Dtype::f32);
  EXPECT_EQ(guess_of({"true", "False"}), Dtype::boolean);
  EXPECT_EQ(guess_of({"true", "1"}), Dtype::string);
  EXPECT_EQ(guess_of({"1", "x"}), Dtype::string);
  EXPECT_EQ(guess_of({"-"}), Dtype::string);
  EXPECT_FALSE(TypeGuess().dtype(Dtype::f32).has_value());
}

}  // namespace
}  // namespace penstock
