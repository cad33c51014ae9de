#include "penstock/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>

namespace penstock {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
T from_bits(unsigned bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

template <typename T>
void expect_size() {
  EXPECT_EQ(dtype_size(kDtypeOf<T>), sizeof(T)) << dtype_name(kDtypeOf<T>);
}

/// Every value of T except NaN round-trips exactly; NaN stays NaN and keeps its sign.
template <typename T>
void expect_round_trips() {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const T value = from_bits<T>(bits);
    const auto wide = static_cast<float>(value);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(T(wide)))) << bits;
      ASSERT_EQ(std::signbit(wide), bits >= 0x8000) << bits;
      ASSERT_EQ(T(wide).bits & 0x8000U, bits & 0x8000U) << bits;
    } else {
      ASSERT_EQ(T(wide).bits, bits);
    }
  }
}

/// Between each two neighbors, up to infinity: the middle rounds to the even one, values next to
/// the middle round to the nearer one. `infinity` has the bits of T's infinity; `middle` returns
/// the exact middle between the value of some bits and the next.
template <typename T, typename Middle>
void expect_rounds_to_nearest_even(unsigned infinity, Middle middle) {
  for (const float sign : {1.0F, -1.0F}) {
    const unsigned sign_bit = sign < 0 ? 0x8000 : 0;
    for (unsigned bits = 0; bits < infinity; ++bits) {
      const float half_way = middle(bits);
      const unsigned even = bits + bits % 2;
      ASSERT_EQ(T(sign * half_way).bits, sign_bit | even) << bits;
      ASSERT_EQ(T(sign * std::nextafter(half_way, 0.0F)).bits, sign_bit | bits) << bits;
      ASSERT_EQ(T(sign * std::nextafter(half_way, kInfinity)).bits, sign_bit | (bits + 1)) << bits;
    }
  }
}

TEST(DtypeTest, SizesAreThoseOfTheTypes) {
  expect_size<bool>();
  expect_size<std::uint8_t>();
  expect_size<std::uint16_t>();
  expect_size<std::uint32_t>();
  expect_size<std::uint64_t>();
  expect_size<std::int8_t>();
  expect_size<std::int16_t>();
  expect_size<std::int32_t>();
  expect_size<std::int64_t>();
  expect_size<Half>();
  expect_size<BFloat16>();
  expect_size<float>();
  expect_size<double>();
  EXPECT_EQ(dtype_size(Dtype::bytes), 0U);
  EXPECT_EQ(dtype_size(Dtype::string), 0U);
}

TEST(DtypeTest, EveryDtypeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Dtype::string); ++i)
    names.insert(dtype_name(static_cast<Dtype>(i)));
  EXPECT_EQ(names.size(), 15U);
  EXPECT_EQ(dtype_name(kDtypeOf<bool>), "bool");
  EXPECT_EQ(dtype_name(kDtypeOf<std::int64_t>), "i64");
  EXPECT_EQ(dtype_name(kDtypeOf<BFloat16>), "bf16");
  EXPECT_EQ(dtype_name(Dtype::string), "string");
}

TEST(HalfTest, AllBitPatternsSurviveTheWayToFloatAndBack) {
  expect_round_trips<Half>();
}

TEST(HalfTest, FloatsRoundToTheNearestEven) {
  expect_rounds_to_nearest_even<Half>(0x7c00, [](unsigned bits) {
    const auto low = static_cast<float>(from_bits<Half>(bits));
    // Past the largest half the next step would be 65536.
    const float high = bits == 0x7bff ? 65536.0F : static_cast<float>(from_bits<Half>(bits + 1));
    return (low + high) / 2;
  });
}

TEST(HalfTest, ExtremesHaveTheirKnownBits) {
  EXPECT_EQ(static_cast<float>(from_bits<Half>(0x0001)), 0x1.0p-24F);
  EXPECT_EQ(static_cast<float>(from_bits<Half>(0x03ff)), 0x1.ff8p-15F);
  EXPECT_EQ(static_cast<float>(from_bits<Half>(0x0400)), 0x1.0p-14F);
  EXPECT_EQ(static_cast<float>(from_bits<Half>(0x7bff)), 65504.0F);
  EXPECT_EQ(static_cast<float>(from_bits<Half>(0xfc00)), -kInfinity);
  EXPECT_EQ(Half(kInfinity).bits, 0x7c00);
  EXPECT_EQ(Half(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(Half(-0.0F).bits, 0x8000);
  EXPECT_EQ(Half(-std::numeric_limits<float>::denorm_min()).bits, 0x8000);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(kNan))));
}

TEST(BFloat16Test, AllBitPatternsSurviveTheWayToFloatAndBack) {
  expect_round_trips<BFloat16>();
}

TEST(BFloat16Test, FloatsRoundToTheNearestEven) {
  expect_rounds_to_nearest_even<BFloat16>(
      0x7f80, [](unsigned bits) { return std::bit_cast<float>(bits << 16 | 0x8000U); });
}

TEST(BFloat16Test, ANanWhosePayloadIsCutAwayStaysANan) {
  for (const std::uint32_t word : {0x7f800001U, 0xff800001U, 0x7fffffffU, 0xffffffffU})
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(word))))) << word;
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace penstock
