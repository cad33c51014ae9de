#pragma once
// The types of values in tensors, and the C++ type of each.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock {

enum class Dtype : std::uint8_t {
  boolean,
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  bytes,   // one value is a sequence of bytes of any length
  string,  // the same, in UTF-8
};

/// IEEE 754 half precision; converts to and from float, rounding to nearest even.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
  bool operator==(const Half&) const = default;
};

/// The upper half of a float; converts to and from float, rounding to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const;
  bool operator==(const BFloat16&) const = default;
};

/// Bytes of one value; 0 for bytes and string, whose values vary in length.
std::size_t dtype_size(Dtype dtype);
std::string_view dtype_name(Dtype dtype);
inline bool is_variable(Dtype dtype) {
  return dtype == Dtype::bytes || dtype == Dtype::string;
}

/// The Dtype of a C++ type; undefined for types that have none.
template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<bool> {
  static constexpr Dtype value = Dtype::boolean;
};
template <>
struct DtypeOf<std::uint8_t> {
  static constexpr Dtype value = Dtype::u8;
};
template <>
struct DtypeOf<std::uint16_t> {
  static constexpr Dtype value = Dtype::u16;
};
template <>
struct DtypeOf<std::uint32_t> {
  static constexpr Dtype value = Dtype::u32;
};
template <>
struct DtypeOf<std::uint64_t> {
  static constexpr Dtype value = Dtype::u64;
};
template <>
struct DtypeOf<std::int8_t> {
  static constexpr Dtype value = Dtype::i8;
};
template <>
struct DtypeOf<std::int16_t> {
  static constexpr Dtype value = Dtype::i16;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr Dtype value = Dtype::i64;
};
template <>
struct DtypeOf<long long> {
  static constexpr Dtype value = Dtype::i64;
};
template <>
struct DtypeOf<unsigned long long> {
  static constexpr Dtype value = Dtype::u64;
};
template <>
struct DtypeOf<Half> {
  static constexpr Dtype value = Dtype::f16;
};
template <>
struct DtypeOf<BFloat16> {
  static constexpr Dtype value = Dtype::bf16;
};
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
};

template <typename T>
inline constexpr Dtype kDtypeOf = DtypeOf<T>::value;

}  // namespace penstock
