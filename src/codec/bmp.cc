#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codec/formats.h"
#include "codec/pixels.h"

namespace penstock {
namespace {

constexpr std::size_t kFileHeader = 14;
constexpr std::size_t kCoreHeader = 12;  // of OS/2; the others have at least 40 bytes
constexpr std::size_t kInfoHeader = 40;

// Numbers of ways to store pixels.
constexpr std::uint32_t kPlain = 0;
constexpr std::uint32_t kRle8 = 1;
constexpr std::uint32_t kRle4 = 2;
constexpr std::uint32_t kBitFields = 3;
constexpr std::uint32_t kAlphaBitFields = 6;

struct BmpHeader {
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool top_down = false;
  unsigned bits = 24;
  std::array<std::size_t, 4> places = {2, 1, 0, 3};  // of R, G, B and A in a pixel's bytes
  bool alpha = false;
  EncodedBytes palette = {};
  std::size_t entry = 4;      // bytes of one of its colours
  std::size_t pixels_at = 0;  // of the first row

  [[nodiscard]] std::size_t stride() const {
    return (static_cast<std::size_t>(width) * bits + 31) / 32 * 4;
  }
};

Failure truncated(EncodedBytes bytes, std::string_view where) {
  return Failure{.message = fmt::format("the BMP ends after {} bytes, {}", bytes.size(), where),
                 .remedy = "fetch the file again: it is truncated"};
}

Failure unsupported(std::string what) {
  return Failure{.message = std::move(what),
                 .remedy = "convert it to a PNG, or to a BMP of 24 bits without compression"};
}

/// Masks that pick whole bytes, which is all that programs write.
std::optional<Failure> read_masks(EncodedBytes bytes, std::size_t info, BmpHeader& header) {
  const std::size_t at = kFileHeader + kInfoHeader;
  // Behind a header of 40 bytes there are three masks; longer headers hold four.
  const std::size_t masks = info >= 56 ? 4 : 3;
  if (bytes.size() < at + masks * 4) return truncated(bytes, "inside its header");
  unsigned used = 0;
  for (std::size_t i = 0; i < masks; ++i) {
    const std::uint32_t mask = little32(bytes, at + i * 4);
    const unsigned place = static_cast<unsigned>(std::countr_zero(mask)) / 8;
    if (i == 3 && mask == 0) return {};
    if (std::popcount(mask) != 8 || mask != 0xffU << (place * 8U) || (used >> place & 1U) != 0) {
      return unsupported(fmt::format(
          "the BMP has a colour mask of {:#010x}, and only whole bytes can be read", mask));
    }
    used |= 1U << place;
    header.places.at(i) = place;
    header.alpha = i == 3;
  }
  return {};
}

std::optional<Failure> read_palette(EncodedBytes bytes, std::size_t info, BmpHeader& header) {
  const std::size_t at = kFileHeader + info;
  header.entry = info == kCoreHeader ? 3 : 4;
  std::size_t colors = info == kCoreHeader ? 0 : little32(bytes, kFileHeader + 32);
  if (colors == 0) colors = 256;
  if (colors > 256)
    return Failure{.message = fmt::format("the BMP has a palette of {} colours", colors)};
  if (bytes.size() - at < colors * header.entry) return truncated(bytes, "inside its palette");
  header.palette = bytes.subspan(at, colors * header.entry);
  return {};
}

Result<BmpHeader> read_header(EncodedBytes bytes) {
  if (bytes.size() < kFileHeader + kCoreHeader) return truncated(bytes, "inside its header");
  const std::size_t info = little32(bytes, kFileHeader);
  const bool core = info == kCoreHeader;
  if (!core && (info < kInfoHeader || info > 1024))
    return unsupported(fmt::format("the BMP has a header of {} bytes, which is not known", info));
  if (bytes.size() < kFileHeader + info) return truncated(bytes, "inside its header");
  BmpHeader header;
  header.pixels_at = little32(bytes, 10);
  if (core) {
    header.width = little16(bytes, kFileHeader + 4);
    header.height = little16(bytes, kFileHeader + 6);
  } else {
    header.width = static_cast<std::int32_t>(little32(bytes, kFileHeader + 4));
    header.height = static_cast<std::int32_t>(little32(bytes, kFileHeader + 8));
  }
  header.top_down = header.height < 0;
  if (header.top_down) header.height = -header.height;
  if (header.width <= 0 || header.height <= 0)
    return Failure{
        .message = fmt::format("the BMP says it has {} x {} pixels", header.width, header.height)};
  header.bits = little16(bytes, kFileHeader + (core ? 10 : 14));
  const std::uint32_t packing = core ? kPlain : little32(bytes, kFileHeader + 16);
  if (packing == kRle8 || packing == kRle4)
    return unsupported("the BMP is compressed (RLE), which is not supported");
  const bool masks = packing == kBitFields || packing == kAlphaBitFields;
  if (!masks && packing != kPlain)
    return unsupported(fmt::format("the BMP has compression {}, which is not supported", packing));
  if ((header.bits != 8 && header.bits != 24 && header.bits != 32) || (masks && header.bits != 32))
    return unsupported(fmt::format("the BMP has {} bits per pixel{}, which is not supported",
                                   header.bits, masks ? " and colour masks" : ""));
  if (masks) {
    if (auto failure = read_masks(bytes, info, header)) return *std::move(failure);
  }
  if (header.bits == 8) {
    if (auto failure = read_palette(bytes, info, header)) return *std::move(failure);
  }
  return header;
}

struct BmpRows {
  const std::byte* first = nullptr;  // the leftmost pixel of the part's top row
  std::ptrdiff_t step = 0;           // to the row below it
};

void look_up(const BmpHeader& header, const BmpRows& from, Pixels& pixels, std::byte* out) {
  // Numbers beyond the palette are black.
  std::array<std::array<std::byte, 3>, 256> colors{};
  for (std::size_t i = 0; i < header.palette.size() / header.entry; ++i) {
    for (std::size_t channel = 0; channel < 3; ++channel)
      colors.at(i).at(channel) = header.palette[i * header.entry + 2 - channel];
  }
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::byte* const row = from.first + y * from.step;
    std::byte* to = out + static_cast<std::size_t>(y) * pixels.stride;
    for (std::int64_t x = 0; x < pixels.width; ++x, to += 3)
      std::memcpy(to, colors[std::to_integer<std::size_t>(row[x])].data(), 3);
  }
}

template <std::size_t From, std::size_t To>
void reorder(const BmpHeader& header, const BmpRows& from, Pixels& pixels, std::byte* out) {
  const auto places = header.places;
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::byte* row = from.first + y * from.step;
    std::byte* to = out + static_cast<std::size_t>(y) * pixels.stride;
    for (std::int64_t x = 0; x < pixels.width; ++x, row += From, to += To) {
      for (std::size_t channel = 0; channel < To; ++channel) to[channel] = row[places[channel]];
    }
  }
}

}  // namespace

Result<ImageInfo> probe_bmp(EncodedBytes bytes) {
  const Result<BmpHeader> header = read_header(bytes);
  if (!header) return header.failure();
  ImageInfo info;
  info.format = ImageFormat::bmp;
  info.width = (*header).width;
  info.height = (*header).height;
  info.channels = (*header).alpha ? 4 : 3;
  return info;
}

Result<Pixels> decode_bmp(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                          Scratch& scratch) {
  const Result<BmpHeader> read = read_header(bytes);
  if (!read) return read.failure();
  const BmpHeader& header = *read;
  if (header.width != stored.width || header.height != stored.height)
    return Failure{.message = "the BMP is not the one that was looked at before"};
  const std::size_t stride = header.stride();
  // The last row may lack the bytes that fill it up to a multiple of four.
  const auto rows_above = static_cast<std::size_t>(header.height - 1);
  const std::size_t row_bytes = static_cast<std::size_t>(header.width) * header.bits / 8;
  const std::size_t there = header.pixels_at > bytes.size() ? 0 : bytes.size() - header.pixels_at;
  if (there / stride < rows_above || there - rows_above * stride < row_bytes)
    return truncated(bytes, "in the middle of its pixel data");
  const Region& part = request.part;
  const std::int64_t row = header.top_down ? part.y : header.height - 1 - part.y;
  const std::size_t first =
      static_cast<std::size_t>(row) * stride + static_cast<std::size_t>(part.x) * header.bits / 8;
  const auto step = static_cast<std::ptrdiff_t>(stride);
  const BmpRows from{.first = bytes.data() + header.pixels_at + first,
                     .step = header.top_down ? step : -step};
  Pixels pixels{.width = part.width, .height = part.height, .channels = header.alpha ? 4 : 3};
  pixels.stride = static_cast<std::size_t>(part.width) * static_cast<std::size_t>(pixels.channels);
  std::byte* const out = allocate_rows(pixels.stride, part.height, scratch);
  pixels.data = out;
  if (header.bits == 8) {
    look_up(header, from, pixels, out);
  } else if (header.bits == 24) {
    reorder<3, 3>(header, from, pixels, out);
  } else if (header.alpha) {
    reorder<4, 4>(header, from, pixels, out);
  } else {
    reorder<4, 3>(header, from, pixels, out);
  }
  return pixels;
}

}  // namespace penstock
