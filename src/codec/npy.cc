#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "codec/formats.h"
#include "codec/pixels.h"

namespace penstock {
namespace {

constexpr std::size_t kMagic = 8;  // six letters and a version

struct NpyHeader {
  Dtype dtype = Dtype::u8;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  std::size_t values_at = 0;
};

Failure truncated(EncodedBytes bytes, std::string_view where) {
  return Failure{.message = fmt::format("the npy ends after {} bytes, {}", bytes.size(), where),
                 .remedy = "fetch the file again: it is truncated"};
}

Failure no_image(std::string message, std::string remedy) {
  return Failure{.message = std::move(message), .remedy = std::move(remedy)};
}

Result<Dtype> dtype_of(std::string_view descr) {
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
    return no_image("the npy holds Python objects, which are never loaded",
                    "save an array of numbers: np.asarray(list, dtype=np.uint8)");
  if (descr.size() < 3) return no_image(fmt::format("the npy has dtype '{}'", descr), "");
  if (descr[0] == '>' && descr.substr(2) != "1")
    return no_image(fmt::format("the npy has dtype '{}', with the high byte first", descr),
                    "save it with array.astype(array.dtype.newbyteorder('<'))");
  const auto* const found = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& each) {
    return each.first == descr.substr(1);
  });
  if (found != kDtypes.end()) return found->second;
  return no_image(fmt::format("the npy has dtype '{}', which is not supported", descr),
                  "save it as integers of 8 to 64 bits or floats of 16, 32 or 64");
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
    return value;
  }

 private:
  void skip_spaces() {
    while (!left_.empty() && (left_[0] == ' ' || left_[0] == '\n')) left_.remove_prefix(1);
  }
  std::string_view left_;
};

struct NpyFields {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
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

std::optional<Result<NpyFields>> read_field(NpyText& text, std::string_view key,
                                            NpyFields& fields) {
  if (key == "descr") {
    const auto descr = text.quoted();
    if (!descr)
      return Result<NpyFields>(no_image("the npy holds records of several fields",
                                        "save each field as an array of its own"));
    fields.descr = *descr;
    return {};
  }
  if (key == "fortran_order") {
    fields.fortran_order = text.take("True");
    if (fields.fortran_order || text.take("False")) return {};
  }
  if (key == "shape" && read_shape(text, fields.shape)) return {};
  return Result<NpyFields>(Failure{.message = "the npy's header is damaged"});
}

Result<NpyFields> read_fields(std::string_view header) {
  NpyText text(header);
  NpyFields fields;
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

Result<NpyHeader> read_header(EncodedBytes bytes) {
  if (bytes.size() < kMagic + 2) return truncated(bytes, "inside its header");
  const unsigned version = byte_at(bytes, 6);
  if (version < 1 || version > 3)
    return no_image(fmt::format("the npy has version {}, but only 1 to 3 are supported", version),
                    "");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < kMagic + length_bytes) return truncated(bytes, "inside its header");
  const std::size_t length = version == 1 ? little16(bytes, kMagic) : little32(bytes, kMagic);
  const std::size_t text_at = kMagic + length_bytes;
  if (length > bytes.size() - text_at) return truncated(bytes, "inside its header");
  const Result<NpyFields> fields =
      read_fields({reinterpret_cast<const char*>(bytes.data()) + text_at, length});
  if (!fields) return fields.failure();
  const Result<Dtype> dtype = dtype_of((*fields).descr);
  if (!dtype) return dtype.failure();
  const auto& shape = (*fields).shape;
  if ((*fields).fortran_order)
    return no_image("the npy is stored column by column (Fortran order)",
                    "save it with np.ascontiguousarray(array)");
  if (shape.size() != 2 && shape.size() != 3)
    return no_image(
        fmt::format("the npy has the shape {}, which is not an image", shape_text(shape)),
        "save height x width, or height x width x channels");
  NpyHeader header{.dtype = *dtype,
                   .height = shape[0],
                   .width = shape[1],
                   .channels = shape.size() == 3 ? shape[2] : 1,
                   .values_at = text_at + length};
  constexpr std::int64_t kSizeMax = std::numeric_limits<std::int32_t>::max();
  if (header.width < 1 || header.height < 1 || header.width > kSizeMax || header.height > kSizeMax)
    return no_image(fmt::format("the npy has the shape {}", shape_text(shape)), "");
  if (header.channels < 1 || header.channels > 4)
    return no_image(fmt::format("the npy has the shape {}, which has {} channels",
                                shape_text(shape), header.channels),
                    "save 1 to 4 channels, as the last dimension");
  return header;
}

}  // namespace

Result<ImageInfo> probe_npy(EncodedBytes bytes) {
  const Result<NpyHeader> header = read_header(bytes);
  if (!header) return header.failure();
  ImageInfo info;
  info.format = ImageFormat::npy;
  info.width = (*header).width;
  info.height = (*header).height;
  info.channels = static_cast<int>((*header).channels);
  info.dtype = (*header).dtype;
  info.bits = static_cast<int>(dtype_size(info.dtype) * 8);
  return info;
}

Result<Pixels> decode_npy(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                          Scratch& scratch) {
  const Result<NpyHeader> header = read_header(bytes);
  if (!header) return header.failure();
  if ((*header).width != stored.width || (*header).height != stored.height)
    return Failure{.message = "the npy changed between probing and decoding"};
  const std::size_t pixel =
      static_cast<std::size_t>((*header).channels) * dtype_size((*header).dtype);
  const std::size_t stride = static_cast<std::size_t>((*header).width) * pixel;
  if ((bytes.size() - (*header).values_at) / stride < static_cast<std::size_t>((*header).height))
    return truncated(bytes, "in the middle of its values");
  const Region& part = request.part;
  Pixels pixels{.width = part.width,
                .height = part.height,
                .channels = static_cast<int>((*header).channels),
                .dtype = (*header).dtype};
  pixels.stride = static_cast<std::size_t>(part.width) * pixel;
  // Copied, since the values in the file need not be aligned or have slack after them.
  std::byte* const out = allocate_rows(pixels.stride, part.height, scratch);
  pixels.data = out;
  const std::byte* row = bytes.data() + (*header).values_at +
                         static_cast<std::size_t>(part.y) * stride +
                         static_cast<std::size_t>(part.x) * pixel;
  for (std::int64_t y = 0; y < part.height; ++y, row += stride)
    std::memcpy(out + static_cast<std::size_t>(y) * pixels.stride, row, pixels.stride);
  return pixels;
}

}  // namespace penstock
