// tested in src/feed/write_records_test.cc
#include "codec/npy_write.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace penstock {
namespace {

const char* descr_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean:
      return "|b1";
    case Dtype::u8:
      return "|u1";
    case Dtype::u16:
      return "<u2";
    case Dtype::u32:
      return "<u4";
    case Dtype::u64:
      return "<u8";
    case Dtype::i8:
      return "|i1";
    case Dtype::i16:
      return "<i2";
    case Dtype::i32:
      return "<i4";
    case Dtype::i64:
      return "<i8";
    case Dtype::f16:
      return "<f2";
    case Dtype::bf16:
    case Dtype::f32:
      return "<f4";
    case Dtype::f64:
      return "<f8";
    case Dtype::bytes:
    case Dtype::string:
      break;
  }
  PENSTOCK_CHECK(!is_variable(dtype));
  return "";
}

std::string shape_of(const Shape& shape) {
  std::string text = "(";
  for (const std::int64_t size : shape) text += fmt::format("{},", size);
  return text + ")";
}

}  // namespace

std::string encode_npy(const Tensor& tensor) {
  constexpr std::size_t kAlign = 64;
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   descr_of(tensor.dtype()), shape_of(tensor.shape()));
  constexpr std::size_t kBefore = 10;
  header.append(kAlign - (kBefore + header.size() + 1) % kAlign, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (tensor.dtype() != Dtype::bf16) return bytes.append(tensor.text());
  for (std::size_t i = 0; i < tensor.raw().size(); i += sizeof(BFloat16)) {
    BFloat16 value;
    std::memcpy(&value, tensor.raw().data() + i, sizeof value);
    const auto single = static_cast<float>(value);
    bytes.append(reinterpret_cast<const char*>(&single), sizeof single);
  }
  return bytes;
}

}  // namespace penstock
