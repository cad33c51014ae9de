#pragma once
// From a Dtype to the C++ type of its values.

#include <cstdint>

#include "penstock/dtype.h"

namespace penstock {

/// Returns `body(value)` with some value of the C++ type of a numeric `dtype`. Text has no such
/// type: `body` is then called with a `NoType`.
struct NoType {};
template <typename Body>
auto with_type(Dtype dtype, Body body) {
  switch (dtype) {
    case Dtype::boolean:
      return body(bool{});
    case Dtype::u8:
      return body(std::uint8_t{});
    case Dtype::u16:
      return body(std::uint16_t{});
    case Dtype::u32:
      return body(std::uint32_t{});
    case Dtype::u64:
      return body(std::uint64_t{});
    case Dtype::i8:
      return body(std::int8_t{});
    case Dtype::i16:
      return body(std::int16_t{});
    case Dtype::i32:
      return body(std::int32_t{});
    case Dtype::i64:
      return body(std::int64_t{});
    case Dtype::f16:
      return body(Half{});
    case Dtype::bf16:
      return body(BFloat16{});
    case Dtype::f32:
      return body(float{});
    case Dtype::f64:
      return body(double{});
    case Dtype::bytes:
    case Dtype::string:
      break;
  }
  return body(NoType{});
}

}  // namespace penstock
