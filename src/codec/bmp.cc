#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codec/bmp_rle.h"
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
  bool rle = false;
  unsigned bits = 24;
  std::array<std::uint32_t, 4> masks = {0xff0000, 0xff00, 0xff, 0};  // of R, G, B and A
  bool alpha = false;
  EncodedBytes palette = {};
  std::size_t entry = 4;      // bytes of one of its colors
  std::size_t pixels_at = 0;  // of the first row

  [[nodiscard]] bool indexed() const { return bits <= 8; }
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

/// Whether the ones of the mask are adjacent.
bool in_one_piece(std::uint32_t mask) {
  if (mask == 0) return false;
  const std::uint32_t low = mask >> static_cast<unsigned>(std::countr_zero(mask));
  return (low & (low + 1)) == 0;
}

std::optional<Failure> read_masks(EncodedBytes bytes, std::size_t count, BmpHeader& header) {
  const std::size_t at = kFileHeader + kInfoHeader;
  if (bytes.size() < at + count * 4) return truncated(bytes, "inside its header");
  std::uint32_t used = 0;
  header.masks[3] = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t mask = little32(bytes, at + i * 4);
    if (i == 3 && mask == 0) break;
    if (!in_one_piece(mask) || (used & mask) != 0 || (header.bits == 16 && mask > 0xffff))
      return unsupported(
          fmt::format("the BMP has a color mask of {:#010x}, which cannot be read", mask));
    used |= mask;
    header.masks.at(i) = mask;
  }
  header.alpha = header.masks[3] != 0;
  return {};
}

/// The palette after `at`, where the header ends. Returns where the palette ends.
Result<std::size_t> read_palette(EncodedBytes bytes, std::size_t at, bool core, BmpHeader& header) {
  header.entry = core ? 3 : 4;
  const std::size_t most = std::size_t{1} << header.bits;
  const std::size_t given = core ? 0 : little32(bytes, kFileHeader + 32);
  if (given > 65536)
    return Failure{.message = fmt::format("the BMP has a palette of {} colors", given)};
  std::size_t colors = given == 0 ? most : std::min(given, most);
  // Some files do not state the number of colors and store fewer: pixels then begin earlier.
  const std::size_t before = header.pixels_at > at ? (header.pixels_at - at) / header.entry : most;
  if (given == 0) colors = std::min(colors, before);
  if (bytes.size() - at < colors * header.entry) return truncated(bytes, "inside its palette");
  header.palette = bytes.subspan(at, colors * header.entry);
  return at + colors * header.entry;
}

/// Where the pixels are. Some programs write no offset, or that of the palette.
std::optional<Failure> settle_pixels(std::size_t header_end, std::size_t front_end,
                                     BmpHeader& header) {
  if (header.pixels_at == 0 || header.pixels_at == header_end) header.pixels_at = front_end;
  if (header.pixels_at >= front_end) return {};
  return Failure{.message = fmt::format("the BMP is damaged: its header puts the pixels at byte "
                                        "{}, but header and palette end at {}",
                                        header.pixels_at, front_end)};
}

/// Bits of a pixel and how they are packed, masks and palette.
std::optional<Failure> read_layout(EncodedBytes bytes, std::size_t info, BmpHeader& header) {
  const bool core = info == kCoreHeader;
  const std::uint32_t packing = core ? kPlain : little32(bytes, kFileHeader + 16);
  header.bits = little16(bytes, kFileHeader + (core ? 10 : 14));
  header.rle = packing == kRle8 || packing == kRle4;
  const bool masks = packing == kBitFields || packing == kAlphaBitFields;
  if (!masks && !header.rle && packing != kPlain)
    return unsupported(fmt::format("the BMP has compression {}, which is not supported", packing));
  constexpr std::array<unsigned, 6> kBits = {1, 4, 8, 16, 24, 32};
  const bool known = std::ranges::find(kBits, header.bits) != kBits.end();
  const bool fits = header.rle ? header.bits == (packing == kRle8 ? 8U : 4U)
                               : !masks || header.bits == 16 || header.bits == 32;
  if (!known || !fits)
    return unsupported(fmt::format("the BMP has {} bits per pixel{}, which is not supported",
                                   header.bits,
                                   masks        ? " and color masks"
                                   : header.rle ? fmt::format(" and compression {}", packing)
                                                : ""));
  if (header.bits == 16) header.masks = {0x7c00, 0x3e0, 0x1f, 0};
  std::size_t header_end = kFileHeader + info;
  if (masks) {
    // After a header of 40 bytes there are three or four masks; longer headers contain them.
    const std::size_t count = info >= 56 || packing == kAlphaBitFields ? 4 : 3;
    if (auto failure = read_masks(bytes, count, header)) return failure;
    header_end = std::max(header_end, kFileHeader + kInfoHeader + count * 4);
  }
  std::size_t front_end = header_end;
  if (header.indexed()) {
    const auto end = read_palette(bytes, header_end, core, header);
    if (!end) return end.failure();
    front_end = *end;
  }
  return settle_pixels(header_end, front_end, header);
}

Result<BmpHeader> read_header(EncodedBytes bytes) {
  if (bytes.size() < kFileHeader + kCoreHeader) return truncated(bytes, "inside its header");
  const std::size_t info = little32(bytes, kFileHeader);
  const bool core = info == kCoreHeader;
  if (!core && (info < kInfoHeader || info > 1024))
    return unsupported(
        fmt::format("the BMP has a header of {} bytes, which is not supported", info));
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
  if (auto failure = read_layout(bytes, info, header)) return *std::move(failure);
  return header;
}

struct BmpRows {
  const std::byte* first = nullptr;  // the leftmost byte of the part's top row
  std::ptrdiff_t step = 0;           // to the row below it
  std::int64_t skip = 0;             // pixels of the first byte before the part
  unsigned bits = 8;                 // of one pixel
};

void look_up(const BmpHeader& header, const BmpRows& from, Pixels& pixels, std::byte* out) {
  // Numbers beyond the palette are black.
  std::array<std::array<std::byte, 3>, 256> colors{};
  for (std::size_t i = 0; i < header.palette.size() / header.entry; ++i) {
    for (std::size_t channel = 0; channel < 3; ++channel)
      colors.at(i).at(channel) = header.palette[i * header.entry + 2 - channel];
  }
  const unsigned mask = (1U << from.bits) - 1;
  const auto in_byte = static_cast<std::int64_t>(8 / from.bits);
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::byte* const row = from.first + y * from.step;
    std::byte* to = out + static_cast<std::size_t>(y) * pixels.stride;
    for (std::int64_t x = from.skip; x < from.skip + pixels.width; ++x, to += 3) {
      const auto shift = static_cast<unsigned>(in_byte - 1 - x % in_byte) * from.bits;
      const unsigned index = std::to_integer<unsigned>(row[x / in_byte]) >> shift & mask;
      std::memcpy(to, colors[index].data(), 3);
    }
  }
}

template <std::size_t From, std::size_t To>
void reorder(const BmpHeader& header, const BmpRows& from, Pixels& pixels, std::byte* out) {
  std::array<std::size_t, 4> places{};
  for (std::size_t i = 0; i < To; ++i)
    places.at(i) = static_cast<std::size_t>(std::countr_zero(header.masks.at(i))) / 8;
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::byte* row = from.first + y * from.step;
    std::byte* to = out + static_cast<std::size_t>(y) * pixels.stride;
    for (std::int64_t x = 0; x < pixels.width; ++x, row += From, to += To) {
      for (std::size_t channel = 0; channel < To; ++channel) to[channel] = row[places[channel]];
    }
  }
}

/// Values of any number of bits, in pixels of 16 or 32 bits.
void unmask(const BmpHeader& header, const BmpRows& from, Pixels& pixels, std::byte* out) {
  const auto channels = static_cast<std::size_t>(pixels.channels);
  const std::size_t step = header.bits / 8;
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::byte* row = from.first + y * from.step;
    std::byte* to = out + static_cast<std::size_t>(y) * pixels.stride;
    for (std::int64_t x = 0; x < pixels.width; ++x, row += step, to += channels) {
      const EncodedBytes pixel(row, step);
      const std::uint32_t value = step == 2 ? little16(pixel, 0) : little32(pixel, 0);
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const std::uint32_t mask = header.masks.at(channel);
        const auto shift = static_cast<unsigned>(std::countr_zero(mask));
        const std::uint64_t level = std::uint64_t{(value & mask) >> shift} * 255;
        to[channel] = static_cast<std::byte>(level / (mask >> shift));  // truncated, as Pillow does
      }
    }
  }
}

bool whole_bytes(const BmpHeader& header) {
  return std::ranges::all_of(header.masks, [](std::uint32_t mask) {
    return mask == 0 || (std::popcount(mask) == 8 && std::countr_zero(mask) % 8 == 0);
  });
}

void convert(const BmpHeader& header, const BmpRows& from, Pixels& pixels, std::byte* out) {
  if (header.indexed()) {
    look_up(header, from, pixels, out);
  } else if (header.bits == 24) {
    reorder<3, 3>(header, from, pixels, out);
  } else if (header.bits == 16 || !whole_bytes(header)) {
    unmask(header, from, pixels, out);
  } else if (header.alpha) {
    reorder<4, 4>(header, from, pixels, out);
  } else {
    reorder<4, 3>(header, from, pixels, out);
  }
}

/// Where the rows of `part` are; a Failure if the file is shorter.
Result<BmpRows> stored_rows(EncodedBytes bytes, const BmpHeader& header, const Region& part) {
  const std::size_t stride = header.stride();
  // The last row may lack the padding to a multiple of four.
  const auto rows_above = static_cast<std::size_t>(header.height - 1);
  const std::size_t row_bytes = (static_cast<std::size_t>(header.width) * header.bits + 7) / 8;
  const std::size_t there = header.pixels_at > bytes.size() ? 0 : bytes.size() - header.pixels_at;
  if (there / stride < rows_above || there - rows_above * stride < row_bytes)
    return truncated(bytes, "in the middle of its pixel data");
  const std::int64_t row = header.top_down ? part.y : header.height - 1 - part.y;
  const std::size_t before = static_cast<std::size_t>(part.x) * header.bits;
  const auto step = static_cast<std::ptrdiff_t>(stride);
  return BmpRows{.first = bytes.data() + header.pixels_at + static_cast<std::size_t>(row) * stride +
                          before / 8,
                 .step = header.top_down ? step : -step,
                 .skip = static_cast<std::int64_t>(before % 8 / header.bits),
                 .bits = header.bits};
}

/// The same for run-length codes, which are unpacked to one byte per pixel.
Result<BmpRows> unpacked_rows(EncodedBytes bytes, const BmpHeader& header,
                              const StoredRequest& request, Scratch& scratch) {
  if (header.pixels_at > bytes.size()) return truncated(bytes, "before its pixel data");
  const Region& part = request.part;
  const std::size_t size =
      static_cast<std::size_t>(part.width) * static_cast<std::size_t>(part.height);
  std::byte* const indices = scratch.allocate(size);
  std::memset(indices, 0, size);  // pixels that the codes skip have color 0
  const BmpRle rle{.codes = bytes.subspan(header.pixels_at),
                   .width = header.width,
                   .height = header.height,
                   .top_down = header.top_down,
                   .nibbles = header.bits == 4};
  switch (unpack_bmp_rle(rle, part, request.deadline, indices)) {
    case RleEnd::whole:
      return BmpRows{.first = indices, .step = static_cast<std::ptrdiff_t>(part.width)};
    case RleEnd::late:
      return Failure{.message = "decoding the BMP took longer than the limit",
                     .remedy = "raise time_max if such files are meant to be read"};
    case RleEnd::cut:
      break;
  }
  return truncated(bytes, "in the middle of its pixel data");
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
    return Failure{.message = "the BMP changed between probing and decoding"};
  const Region& part = request.part;
  const Result<BmpRows> from = header.rle ? unpacked_rows(bytes, header, request, scratch)
                                          : stored_rows(bytes, header, part);
  if (!from) return from.failure();
  Pixels pixels{.width = part.width, .height = part.height, .channels = header.alpha ? 4 : 3};
  pixels.stride = static_cast<std::size_t>(part.width) * static_cast<std::size_t>(pixels.channels);
  std::byte* const out = allocate_rows(pixels.stride, part.height, scratch);
  pixels.data = out;
  convert(header, *from, pixels, out);
  return pixels;
}

}  // namespace penstock
