#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codec/formats.h"
#include "codec/pixels.h"

namespace penstock {
namespace {

bool is_space(unsigned each) {
  return each == ' ' || (each >= '\t' && each <= '\r');
}

/// Reads numbers in text, with comments from # to the end of the line between them.
class PnmText {
 public:
  PnmText(EncodedBytes bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  /// Nullopt at the end, if there is no number, or if it is larger than `most`.
  std::optional<std::uint32_t> number(std::uint32_t most) {
    skip();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    while (at_ < bytes_.size() && byte_at(bytes_, at_) - '0' < 10U && value <= most)
      value = value * 10 + (byte_at(bytes_, at_++) - '0');
    if (value > most) at_ = start;
    if (at_ == start) return {};
    return static_cast<std::uint32_t>(value);
  }
  /// For PBM, whose digits need no space between them.
  std::optional<std::uint32_t> digit() {
    skip();
    if (at_ >= bytes_.size() || byte_at(bytes_, at_) - '0' > 1U) return {};
    return byte_at(bytes_, at_++) - '0';
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] bool ended() {
    skip();
    return at_ >= bytes_.size();
  }
  [[nodiscard]] bool after_space() const {
    return at_ < bytes_.size() && is_space(byte_at(bytes_, at_));
  }

 private:
  void skip() {
    bool comment = false;
    for (; at_ < bytes_.size(); ++at_) {
      const unsigned each = byte_at(bytes_, at_);
      if (each == '#') comment = true;
      if (!comment && !is_space(each)) return;
      if (each == '\n' || each == '\r') comment = false;
    }
  }

  EncodedBytes bytes_;
  std::size_t at_;
};

struct PnmHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t value_max = 255;
  std::size_t channels = 1;
  bool as_text = false;
  bool bits = false;  // PBM: 1 is black
  std::size_t pixels_at = 0;

  [[nodiscard]] std::size_t value_bytes() const { return value_max > 255 ? 2 : 1; }
  [[nodiscard]] std::uint64_t row_bytes() const {
    if (bits && !as_text) return (std::uint64_t{width} + 7) / 8;
    // As text a value has at least a digit and a space; a bit needs no space.
    return std::uint64_t{width} * channels * (as_text && !bits ? 2 : value_bytes());
  }
};

Failure truncated(EncodedBytes bytes, std::string_view where) {
  return Failure{.message = fmt::format("the PPM/PGM ends after {} bytes, {}", bytes.size(), where),
                 .remedy = "fetch the file again: it is truncated"};
}

Result<PnmHeader> read_header(EncodedBytes bytes) {
  constexpr std::uint32_t kSizeMax = 0x7fffffff;
  const unsigned kind = byte_at(bytes, 1) - '0';  // 1 to 6
  const bool bits = kind == 1 || kind == 4;
  PnmText text(bytes, 2);
  const auto width = text.number(kSizeMax);
  const auto height = text.number(kSizeMax);
  const auto value_max = bits ? std::optional<std::uint32_t>(1) : text.number(65535);
  if (!width || !height || !value_max) {
    if (text.ended()) return truncated(bytes, "inside its header");
    return Failure{.message = fmt::format("the PPM/PGM's header is damaged at byte {}: there must "
                                          "be width, height and a largest value of at most 65535",
                                          text.at())};
  }
  if (*width == 0 || *height == 0 || *value_max == 0)
    return Failure{.message = fmt::format("the PPM/PGM says it has {} x {} pixels up to {}", *width,
                                          *height, *value_max)};
  if (!text.after_space()) return truncated(bytes, "inside its header");
  return PnmHeader{.width = *width,
                   .height = *height,
                   .value_max = *value_max,
                   .channels = kind == 3 || kind == 6 ? 3U : 1U,
                   .as_text = kind <= 3,
                   .bits = bits,
                   .pixels_at = text.at() + 1};
}

/// Scales values up to `value_max` to values up to 255 or 65535, rounded.
struct PnmScale {
  std::uint32_t from = 255;
  std::uint32_t to = 255;
  [[nodiscard]] std::uint32_t of(std::uint32_t value) const {
    if (from == to) return value;
    return (std::min(value, from) * to + from / 2) / from;
  }
};

/// A value of the output: 16 bits, or their upper half.
void put(std::byte*& out, std::uint32_t value, const Pixels& pixels, bool narrow) {
  if (pixels.dtype == Dtype::u16) {
    const auto wide = static_cast<std::uint16_t>(value);
    std::memcpy(out, &wide, 2);
    out += 2;
  } else {
    *out++ = static_cast<std::byte>(narrow ? value >> 8U : value);
  }
}

Result<Pixels> decode_text(EncodedBytes bytes, const PnmHeader& header,
                           const StoredRequest& request, Pixels pixels, std::byte* out) {
  const bool wide = header.value_bytes() == 2;
  const PnmScale scale{.from = header.value_max, .to = wide ? 65535U : 255U};
  const Region& part = request.part;
  PnmText text(bytes, header.pixels_at);
  for (std::int64_t y = 0; y < part.y + part.height; ++y) {
    if (std::chrono::steady_clock::now() >= request.deadline) {
      return Failure{.message = "decoding the PPM/PGM took longer than the limit",
                     .remedy = "raise time_max if such files are meant to be read"};
    }
    for (std::int64_t x = 0; x < header.width; ++x) {
      const bool inside = y >= part.y && x >= part.x && x < part.x + part.width;
      for (std::size_t channel = 0; channel < header.channels; ++channel) {
        auto value = header.bits ? text.digit() : text.number(header.value_max);
        if (!value) {
          if (text.ended()) return truncated(bytes, "in the middle of its pixel data");
          return Failure{.message =
                             fmt::format("the PPM/PGM is damaged at byte {}: there must be a "
                                         "number up to {}",
                                         text.at(), header.value_max)};
        }
        if (header.bits) value = 1 - *value;
        if (inside) put(out, scale.of(*value), pixels, wide);
      }
    }
  }
  return pixels;
}

Pixels decode_bits(EncodedBytes bytes, const PnmHeader& header, const Region& part, Pixels pixels,
                   std::byte* out) {
  for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
    const std::size_t row = header.pixels_at + static_cast<std::size_t>(y) * header.row_bytes();
    for (std::int64_t x = part.x; x < part.x + part.width; ++x) {
      const unsigned eight = byte_at(bytes, row + static_cast<std::size_t>(x / 8));
      const bool black = (eight >> static_cast<unsigned>(7 - x % 8) & 1U) != 0;
      *out++ = std::byte{black ? std::uint8_t{0} : std::uint8_t{255}};
    }
  }
  return pixels;
}

Result<Pixels> decode_binary(EncodedBytes bytes, const PnmHeader& header,
                             const StoredRequest& request, Pixels pixels, std::byte* out) {
  const std::size_t stride = header.row_bytes();
  const Region& part = request.part;
  const std::size_t count = static_cast<std::size_t>(part.width) * header.channels;
  const bool wide = header.value_bytes() == 2;
  const PnmScale scale{.from = header.value_max, .to = wide ? 65535U : 255U};
  for (std::int64_t y = 0; y < part.height; ++y) {
    const EncodedBytes row =
        bytes.subspan(header.pixels_at + static_cast<std::size_t>(part.y + y) * stride +
                          static_cast<std::size_t>(part.x) * header.channels * header.value_bytes(),
                      count * header.value_bytes());
    if (!wide && scale.from == scale.to) {
      std::memcpy(out, row.data(), count);
      out += count;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i)
      put(out, scale.of(wide ? big16(row, i * 2) : byte_at(row, i)), pixels, wide);
  }
  return pixels;
}

}  // namespace

Result<ImageInfo> probe_pnm(EncodedBytes bytes) {
  const Result<PnmHeader> header = read_header(bytes);
  if (!header) return header.failure();
  ImageInfo info;
  info.format = ImageFormat::pnm;
  info.width = (*header).width;
  info.height = (*header).height;
  info.channels = static_cast<int>((*header).channels);
  info.bits = static_cast<int>((*header).value_bytes() * 8);
  info.dtype = info.bits == 16 ? Dtype::u16 : Dtype::u8;
  return info;
}

Result<Pixels> decode_pnm(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                          Scratch& scratch) {
  const Result<PnmHeader> header = read_header(bytes);
  if (!header) return header.failure();
  if ((*header).width != stored.width || (*header).height != stored.height)
    return Failure{.message = "the PPM/PGM changed between probing and decoding"};
  // The last number needs no space after it.
  const bool spaced = (*header).as_text && !(*header).bits;
  const std::uint64_t there = bytes.size() - (*header).pixels_at + (spaced ? 1 : 0);
  if (there / (*header).row_bytes() < (*header).height)
    return truncated(bytes, "in the middle of its pixel data");
  const Region& part = request.part;
  Pixels pixels{
      .width = part.width, .height = part.height, .channels = static_cast<int>((*header).channels)};
  if ((*header).value_bytes() == 2 && request.keep_16_bit) pixels.dtype = Dtype::u16;
  pixels.stride =
      static_cast<std::size_t>(part.width) * (*header).channels * dtype_size(pixels.dtype);
  std::byte* const out = allocate_rows(pixels.stride, part.height, scratch);
  pixels.data = out;
  if ((*header).as_text) return decode_text(bytes, *header, request, pixels, out);
  if ((*header).bits) return decode_bits(bytes, *header, part, pixels, out);
  return decode_binary(bytes, *header, request, pixels, out);
}

}  // namespace penstock
