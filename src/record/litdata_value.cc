// tested in src/record/litdata_test.cc
#include "record/litdata_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/printable.h"

namespace penstock {
namespace {

using Kind = LitDataType::Kind;

std::optional<Dtype> numpy_dtype(std::uint64_t code) {
  constexpr std::array<Dtype, 11> kNumbers = {Dtype::i8,  Dtype::i16, Dtype::i32, Dtype::i64,
                                              Dtype::u8,  Dtype::u16, Dtype::u32, Dtype::u64,
                                              Dtype::f16, Dtype::f32, Dtype::f64};
  constexpr std::uint64_t kBool = 13;  // after two complex ones
  if (code < kNumbers.size()) return kNumbers[code];
  if (code == kBool) return Dtype::boolean;
  return std::nullopt;
}

/// Most dtypes have two numbers, since torch has two names for them.
std::optional<Dtype> tensor_dtype(std::uint64_t code) {
  constexpr std::array<std::optional<Dtype>, 21> kDtypes = {
      Dtype::f32,  Dtype::f32, Dtype::f64, Dtype::f64, {},
      {},          {},         {},         Dtype::f16, Dtype::f16,
      Dtype::bf16, Dtype::u8,  Dtype::i8,  Dtype::i16, Dtype::i16,
      Dtype::i32,  Dtype::i32, Dtype::i64, Dtype::i64, Dtype::boolean,
      Dtype::u16};
  return code < kDtypes.size() ? kDtypes[code] : std::nullopt;
}

/// Of "no_header_numpy:9" without the name.
LitDataType list_type(std::string_view code, std::optional<Dtype> (*dtype_of)(std::uint64_t)) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(code.data(), code.data() + code.size(), number);
  if (error != std::errc{} || end != code.data() + code.size()) return {};
  const std::optional<Dtype> dtype = dtype_of(number);
  if (!dtype) return {};
  return {Kind::list, *dtype};
}

enum class ByteOrder : std::uint8_t { low_first, high_first };

/// Reads numbers of 32 bits from the beginning of `bytes`.
class NumberTaker {
 public:
  NumberTaker(std::string_view bytes, ByteOrder order) : bytes_(bytes), order_(order) {}
  std::optional<std::uint64_t> take() {
    std::uint32_t value = 0;
    if (bytes_.size() < sizeof value) return std::nullopt;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return order_ == ByteOrder::low_first ? value : __builtin_bswap32(value);
  }
  [[nodiscard]] std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
  ByteOrder order_;
};

Result<LitDataArray> finish(LitDataArray array, std::string_view values) {
  std::uint64_t expected = dtype_size(array.dtype);
  bool none = false;
  for (std::size_t i = 0; i < array.rank; ++i) {
    none = none || array.sizes[i] == 0;
    // Sizes beside a 0 count too: their product must not overflow anywhere.
    expected *= std::max<std::uint64_t>(array.sizes[i], 1);
    if (expected > UINT32_MAX) break;
  }
  const std::uint64_t bytes = none && expected <= UINT32_MAX ? 0 : expected;
  if (bytes != values.size())
    return Failure{fmt::format("has {} bytes of values, and its shape [{}] is of {}", values.size(),
                               fmt::join(std::span(array.sizes).first(array.rank), ", "),
                               dtype_name(array.dtype))};
  array.values = values;
  return array;
}

Result<LitDataArray> read_described(std::string_view bytes, Kind kind, ByteOrder order) {
  NumberTaker numbers(bytes, order);
  const auto code = numbers.take();
  const auto rank = numbers.take();
  if (!code || !rank) return Failure{"ends within its shape"};
  const auto dtype = kind == Kind::numpy ? numpy_dtype(*code) : tensor_dtype(*code);
  if (!dtype) return Failure{fmt::format("has an unknown dtype, number {}", *code)};
  if (*rank > LitDataArray::kRankMax) return Failure{fmt::format("has {} dimensions", *rank)};
  LitDataArray array{.dtype = *dtype, .rank = static_cast<std::size_t>(*rank)};
  for (std::size_t i = 0; i < array.rank; ++i) {
    const auto size = numbers.take();
    if (!size) return Failure{"ends within its shape"};
    array.sizes[i] = *size;
  }
  return finish(array, numbers.rest());
}

/// The high bytes first since about 2025, before that the low ones. Both hold for no header but
/// that of a single float, which is then the same.
Result<LitDataArray> read_tensor(std::string_view bytes) {
  Result<LitDataArray> array = read_described(bytes, Kind::tensor, ByteOrder::high_first);
  if (array.ok()) return array;
  Result<LitDataArray> older = read_described(bytes, Kind::tensor, ByteOrder::low_first);
  return older.ok() ? std::move(older) : std::move(array);
}

/// Of the modes of Pillow whose pixels are bytes.
std::uint64_t channels_of(std::string_view mode) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 8> kModes = {{{"L", 1},
                                                                                 {"LA", 2},
                                                                                 {"RGB", 3},
                                                                                 {"YCbCr", 3},
                                                                                 {"HSV", 3},
                                                                                 {"LAB", 3},
                                                                                 {"RGBA", 4},
                                                                                 {"CMYK", 4}}};
  const auto* const found =
      std::ranges::find(kModes, mode, &std::pair<std::string_view, std::uint64_t>::first);
  return found == kModes.end() ? 0 : found->second;
}

Result<LitDataArray> read_picture(std::string_view bytes) {
  NumberTaker numbers(bytes, ByteOrder::low_first);
  const auto width = numbers.take();
  const auto height = numbers.take();
  const auto mode_bytes = numbers.take();
  if (!width || !height || !mode_bytes || numbers.rest().size() < *mode_bytes)
    return Failure{"ends within its size and mode"};
  const std::string_view mode = numbers.rest().substr(0, *mode_bytes);
  const std::uint64_t channels = channels_of(mode);
  if (channels == 0)
    return Failure{fmt::format("is a picture of mode \"{}\"", printable(mode.substr(0, 16)))};
  return finish({.dtype = Dtype::u8, .rank = 3, .sizes = {*height, *width, channels}},
                numbers.rest().substr(*mode_bytes));
}

Result<LitDataArray> read_list(std::string_view bytes, Dtype dtype) {
  if (bytes.size() % dtype_size(dtype) != 0)
    return Failure{
        fmt::format("has {} bytes, which are no values of {}", bytes.size(), dtype_name(dtype))};
  return LitDataArray{
      .dtype = dtype, .rank = 1, .sizes = {bytes.size() / dtype_size(dtype)}, .values = bytes};
}

Result<LitDataArray> read_any(std::string_view bytes, const LitDataType& type) {
  switch (type.kind) {
    case Kind::list:
      return read_list(bytes, type.dtype);
    case Kind::numpy:
      return read_described(bytes, Kind::numpy, ByteOrder::low_first);
    case Kind::tensor:
      return read_tensor(bytes);
    default:
      return read_picture(bytes);
  }
}

}  // namespace

LitDataType litdata_type(std::string_view serializer) {
  constexpr std::array<std::pair<std::string_view, LitDataType>, 18> kTypes = {{
      {"str", {Kind::text, Dtype::string}},
      {"text", {Kind::text, Dtype::string}},
      {"json", {Kind::json, Dtype::string}},
      {"bytes", {Kind::file, Dtype::bytes}},
      {"file", {Kind::file, Dtype::bytes}},
      {"jpeg", {Kind::file, Dtype::bytes}},
      {"image", {Kind::file, Dtype::bytes}},
      {"tif", {Kind::file, Dtype::bytes}},
      {"tifffile", {Kind::file, Dtype::bytes}},
      {"video", {Kind::file, Dtype::bytes}},
      {"audio", {Kind::file, Dtype::bytes}},
      {"pdf", {Kind::file, Dtype::bytes}},
      {"int", {Kind::number, Dtype::i64}},
      {"float", {Kind::number, Dtype::f64}},
      {"bool", {Kind::number, Dtype::boolean}},
      {"numpy", {Kind::numpy, Dtype::u8}},
      {"tensor", {Kind::tensor, Dtype::u8}},
      {"pil", {Kind::picture, Dtype::u8}},
  }};
  const std::size_t colon = std::min(serializer.find(':'), serializer.size());
  const std::string_view name = serializer.substr(0, colon);
  const std::string_view detail = serializer.substr(std::min(colon + 1, serializer.size()));
  if (name == "no_header_numpy") return list_type(detail, numpy_dtype);
  if (name == "no_header_tensor") return list_type(detail, tensor_dtype);
  const auto* const found =
      std::ranges::find(kTypes, name, &std::pair<std::string_view, LitDataType>::first);
  if (found == kTypes.end()) return {};
  // "image:jpg": the kind of a file.
  if (colon < serializer.size() && found->second.kind != Kind::file) return {};
  return found->second;
}

Result<LitDataArray> read_litdata_array(std::string_view bytes, const LitDataType& type) {
  Result<LitDataArray> array = read_any(bytes, type);
  if (!array.ok() || array->dtype != Dtype::boolean) return array;
  if (std::ranges::any_of(array->values, [](char byte) { return byte != 0 && byte != 1; }))
    return Failure{"has bytes other than 0 and 1, expected bool"};
  return array;
}

}  // namespace penstock
