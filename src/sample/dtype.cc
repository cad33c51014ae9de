#include "penstock/tensor.h"

#include <array>
#include <bit>
#include <cmath>

namespace penstock {
namespace {

struct Entry {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<Entry, 15> kEntries{{{"bool", 1},
                                          {"u8", 1},
                                          {"u16", 2},
                                          {"u32", 4},
                                          {"u64", 8},
                                          {"i8", 1},
                                          {"i16", 2},
                                          {"i32", 4},
                                          {"i64", 8},
                                          {"f16", 2},
                                          {"bf16", 2},
                                          {"f32", 4},
                                          {"f64", 8},
                                          {"bytes", 0},
                                          {"string", 0}}};

}  // namespace

std::size_t dtype_size(Dtype dtype) {
  return kEntries[static_cast<std::size_t>(dtype)].size;
}
std::string_view dtype_name(Dtype dtype) {
  return kEntries[static_cast<std::size_t>(dtype)].name;
}

Half::Half(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000U);
  const std::uint32_t magnitude = word & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN stays NaN
    bits = static_cast<std::uint16_t>(sign | 0x7e00U);
  } else if (magnitude >= 0x477ff000U) {  // rounds to infinity
    bits = static_cast<std::uint16_t>(sign | 0x7c00U);
  } else if (magnitude < 0x38800000U) {  // subnormal: let float arithmetic do the rounding
    const float scaled = std::bit_cast<float>(magnitude) * 0x1.0p24F;
    bits = static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  } else {
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U;
    bits = static_cast<std::uint16_t>(sign | (rounded >> 13));
  }
}

Half::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (fraction << 13));
}

BFloat16::BFloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    bits = static_cast<std::uint16_t>((word >> 16) | 0x40U);
  } else {
    bits = static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
  }
}

BFloat16::operator float() const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace penstock
