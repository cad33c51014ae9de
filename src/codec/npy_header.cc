// tested in src/codec/npy_test.cc and src/source/npy_files_test.cc
#include "codec/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "codec/pixels.h"

namespace penstock {
namespace {

constexpr std::size_t kMagic = 8;  // six letters and a version

Failure truncated(EncodedBytes bytes) {
  return Failure{
      .message = fmt::format("the npy ends after {} bytes, inside its header", bytes.size()),
      .remedy = "fetch the file again: it is truncated"};
}

Failure no_array(std::string message, std::string remedy) {
  return Failure{.message = std::move(message), .remedy = std::move(remedy)};
}

/// Reads the header's text, a Python dict: {'descr': '|u1', 'fortran_order': False, 'shape': (2,)}.
class NpyText {
 public:
  explicit NpyText(std::string_view text) : left_(text) {}

  bool take(std::string_view wanted) {
    skip_spaces();
    if (left_.substr(0, wanted.size()) != wanted) return false;
    left_.remove_prefix(wanted.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    skip_spaces();
    if (left_.empty() || (left_[0] != '\'' && left_[0] != '"')) return {};
    const std::size_t end = left_.find(left_[0], 1);
    if (end == std::string_view::npos) return {};
    const std::string_view text = left_.substr(1, end - 1);
    left_.remove_prefix(end + 1);
    return text;
  }
  std::optional<std::int64_t> number() {
    constexpr std::int64_t kMost = std::int64_t{1} << 48;
    skip_spaces();
    std::int64_t value = 0;
    std::size_t digits = 0;
    while (digits < left_.size() && left_[digits] >= '0' && left_[digits] <= '9' && value < kMost)
      value = value * 10 + (left_[digits++] - '0');
    if (digits == 0 || value >= kMost) return {};
    left_.remove_prefix(digits);
    if (left_.starts_with('L')) left_.remove_prefix(1);  // a long of Python 2
    return value;
  }

 private:
  void skip_spaces() {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n')) left_.remove_prefix(1);
  }
  std::string_view left_;
};

bool read_shape(NpyText& text, Shape& shape) {
  constexpr std::size_t kRankMax = 32;
  if (!text.take("(")) return false;
  while (!text.take(")")) {
    const auto size = text.number();
    if (!size || shape.size() == kRankMax) return false;
    shape.push_back(*size);
    if (!text.take(",")) return text.take(")");
  }
  return true;
}

std::optional<Result<NpyHeader>> read_field(NpyText& text, std::string_view key,
                                            NpyHeader& fields) {
  if (key == "descr") {
    const auto descr = text.quoted();
    if (!descr)
      return Result<NpyHeader>(no_array("the npy holds records of several fields",
                                        "save each field as an array of its own"));
    fields.descr = *descr;
    return {};
  }
  if (key == "fortran_order") {
    fields.fortran_order = text.take("True");
    if (fields.fortran_order || text.take("False")) return {};
  }
  if (key == "shape" && read_shape(text, fields.shape)) return {};
  return Result<NpyHeader>(Failure{.message = "the npy's header is damaged"});
}

Result<NpyHeader> read_fields(std::string_view header) {
  NpyText text(header);
  NpyHeader fields;
  const Failure damaged{.message = "the npy's header is damaged"};
  unsigned seen = 0;
  if (!text.take("{")) return damaged;
  while (!text.take("}")) {
    const auto key = text.quoted();
    if (!key || !text.take(":")) return damaged;
    if (auto failed = read_field(text, *key, fields)) return *std::move(failed);
    ++seen;
    if (!text.take(",") && !text.take("}")) return damaged;
    if (seen == 3) break;
  }
  if (seen != 3 || fields.descr.empty()) return damaged;
  return fields;
}

/// The length of the part before the text, and that of the text.
Result<std::pair<std::size_t, std::size_t>> lengths_of(EncodedBytes bytes) {
  if (bytes.size() < kMagic + 2) return truncated(bytes);
  const unsigned version = byte_at(bytes, 6);
  if (version < 1 || version > 3)
    return no_array(fmt::format("the npy has version {}, but only 1 to 3 are supported", version),
                    "");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < kMagic + length_bytes) return truncated(bytes);
  const std::size_t length = version == 1 ? little16(bytes, kMagic) : little32(bytes, kMagic);
  return std::pair(kMagic + length_bytes, length);
}

Result<NpyType> text_type(std::string_view descr) {
  std::uint32_t letters = 0;
  const char* const end = descr.data() + descr.size();
  const auto [stop, error] = std::from_chars(descr.data() + 2, end, letters);
  constexpr std::uint32_t kLettersMax = 1U << 28;
  if (error != std::errc() || stop != end || letters > kLettersMax)
    return no_array(fmt::format("the npy has dtype '{}'", descr), "");
  if (descr[1] == 'S') return NpyType{NpyType::Kind::bytes, Dtype::bytes, letters};
  return NpyType{NpyType::Kind::text, Dtype::string, std::size_t{letters} * 4, descr[0] == '>'};
}

std::string remedy_for(char kind) {
  if (kind == 'M' || kind == 'm') return "save it with array.astype(np.int64)";
  if (kind == 'c') return "save it as pairs of floats, with array.view(np.float32) or float64";
  if (kind == 'V') return "save it as numbers, or bytes with array.view(np.uint8)";
  return "save it as integers of 8 to 64 bits or floats of 16, 32 or 64";
}

}  // namespace

bool NpyHeader::by_rows() const {
  if (!fortran_order) return true;
  if (std::ranges::count(shape, 0) > 0) return true;
  return std::ranges::count_if(shape, [](std::int64_t size) { return size != 1; }) <= 1;
}

Result<std::size_t> npy_header_bytes(EncodedBytes start) {
  constexpr std::size_t kHeaderMax = 1U << 16;
  const auto lengths = lengths_of(start);
  if (!lengths) return lengths.failure();
  const auto& [text_at, length] = *lengths;
  if (length > kHeaderMax)
    return no_array(
        fmt::format("the npy has a header of {} bytes, more than arrays of numbers", length),
        "save an array of numbers; each field of a record as an array of its own");
  return text_at + length;
}

Result<NpyHeader> read_npy_header(EncodedBytes bytes) {
  const auto lengths = lengths_of(bytes);
  if (!lengths) return lengths.failure();
  const auto& [text_at, length] = *lengths;
  if (length > bytes.size() - text_at) return truncated(bytes);
  auto header = read_fields({reinterpret_cast<const char*>(bytes.data()) + text_at, length});
  if (header) header->values_at = text_at + length;
  return header;
}

Result<NpyType> npy_type(std::string_view descr) {
  static constexpr std::array<std::pair<std::string_view, Dtype>, 12> kDtypes = {{
      {"b1", Dtype::boolean},
      {"u1", Dtype::u8},
      {"u2", Dtype::u16},
      {"u4", Dtype::u32},
      {"u8", Dtype::u64},
      {"i1", Dtype::i8},
      {"i2", Dtype::i16},
      {"i4", Dtype::i32},
      {"i8", Dtype::i64},
      {"f2", Dtype::f16},
      {"f4", Dtype::f32},
      {"f8", Dtype::f64},
  }};
  if (descr.size() >= 2 && descr[1] == 'O')
    return no_array("the npy holds Python objects, which are never loaded",
                    "save an array of numbers: np.asarray(list, dtype=np.uint8)");
  if (descr.size() < 3) return no_array(fmt::format("the npy has dtype '{}'", descr), "");
  if (descr[1] == 'S' || descr[1] == 'U') return text_type(descr);
  const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& each) {
    return each.first == descr.substr(1);
  });
  if (found != kDtypes.end()) {
    const std::size_t bytes = dtype_size(found->second);
    return NpyType{NpyType::Kind::number, found->second, bytes, descr[0] == '>' && bytes > 1};
  }
  return no_array(fmt::format("the npy has dtype '{}', which is not supported", descr),
                  remedy_for(descr[1]));
}

Failure npy_by_columns() {
  return no_array("the npy is stored column by column (Fortran order)",
                  "save it with np.ascontiguousarray(array)");
}

}  // namespace penstock
