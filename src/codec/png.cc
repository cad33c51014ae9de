// PNG of 8 bits without interlacing, which is nearly all files: the whole image is inflated in one
// call and unfiltered in place. All other files, and anything unusual, go to libpng.
#include <fmt/format.h>

#ifdef PENSTOCK_DEFLATE
#include <libdeflate.h>
#else
#include <zlib.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "codec/formats.h"
#include "codec/pixels.h"
#include "kernel/unfilter.h"

namespace penstock {
namespace {

constexpr std::size_t kSignature = 8;
constexpr std::size_t kChunkFrame = 12;  // length, type and CRC around the data
constexpr std::size_t kHeaderData = 13;
constexpr std::size_t kPaletteMax = 768;  // bytes: 256 colors
constexpr std::uint32_t kSizeMax = 0x7fffffff;

enum class PngColor : std::uint8_t {
  gray = 0,
  rgb = 2,
  palette = 3,
  gray_alpha = 4,
  rgb_alpha = 6
};

struct PngHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  unsigned bits = 8;
  PngColor color = PngColor::rgb;
  bool interlaced = false;

  [[nodiscard]] std::size_t samples() const {
    switch (color) {
      case PngColor::gray:
      case PngColor::palette:
        return 1;
      case PngColor::gray_alpha:
        return 2;
      case PngColor::rgb:
        return 3;
      case PngColor::rgb_alpha:
        break;
    }
    return 4;
  }
  /// Bytes of a row without its filter byte.
  [[nodiscard]] std::uint64_t row_bytes() const {
    return (std::uint64_t{width} * samples() * bits + 7) / 8;
  }
};

struct PngFile {
  PngHeader header = {};
  EncodedBytes palette = {};
  EncodedBytes transparency = {};
  EncodedBytes exif = {};
  std::size_t pixel_data_at = 0;  // of the first IDAT chunk
  std::size_t pixel_chunks = 0;
  std::size_t pixel_bytes = 0;
  bool odd = false;  // something unusual, for libpng to judge
};

struct PngChunk {
  std::size_t at = 0;  // of its length
  EncodedBytes data;
  std::string_view type;
};

std::uint32_t crc_of(EncodedBytes bytes) {
#ifdef PENSTOCK_DEFLATE
  return libdeflate_crc32(0, bytes.data(), bytes.size());
#else
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
#endif
}

Failure truncated(EncodedBytes bytes, bool in_pixels) {
  return Failure{.message = fmt::format(
                     "the PNG ends after {} bytes, {}", bytes.size(),
                     in_pixels ? "in the middle of its pixel data" : "before its last chunk"),
                 .remedy = "fetch the file again: it is truncated"};
}

/// A chunk whose length fits the file.
Result<PngChunk> chunk_at(EncodedBytes bytes, std::size_t at) {
  if (bytes.size() - at < kChunkFrame) {
    const bool in_pixels = bytes.size() - at >= 8 && has_text(bytes, at + 4, "IDAT");
    return truncated(bytes, in_pixels);
  }
  const std::size_t length = big32(bytes, at);
  const std::string_view type(reinterpret_cast<const char*>(bytes.data()) + at + 4, 4);
  const bool letters = std::all_of(type.begin(), type.end(), [](char each) {
    return (each >= 'A' && each <= 'Z') || (each >= 'a' && each <= 'z');
  });
  if (!letters || length > kSizeMax)
    return Failure{.message = fmt::format("the PNG is damaged: no chunk begins at byte {}", at)};
  if (length > bytes.size() - at - kChunkFrame) return truncated(bytes, type == "IDAT");
  return PngChunk{.at = at, .data = bytes.subspan(at + 8, length), .type = type};
}

bool crc_fits(EncodedBytes bytes, const PngChunk& chunk) {
  const std::size_t length = chunk.data.size();
  return crc_of(bytes.subspan(chunk.at + 4, length + 4)) == big32(bytes, chunk.at + 8 + length);
}

Failure damaged_chunk(const PngChunk& chunk) {
  return Failure{
      .message = fmt::format("the PNG is damaged: the {} chunk at byte {} does not match its CRC",
                             chunk.type, chunk.at),
      .remedy = "fetch the file again"};
}

bool bits_fit(PngColor color, unsigned bits) {
  const bool power = bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
  if (color == PngColor::gray) return power;
  if (color == PngColor::palette) return power && bits <= 8;
  return bits == 8 || bits == 16;
}

Result<PngHeader> read_header(EncodedBytes bytes) {
  const Result<PngChunk> chunk = chunk_at(bytes, kSignature);
  if (!chunk) return chunk.failure();
  const EncodedBytes data = (*chunk).data;
  if ((*chunk).type != "IHDR" || data.size() != kHeaderData)
    return Failure{.message = "the PNG does not begin with a header (IHDR) of 13 bytes"};
  if (!crc_fits(bytes, *chunk)) return damaged_chunk(*chunk);
  const unsigned color = byte_at(data, 9);
  PngHeader header{.width = big32(data, 0),
                   .height = big32(data, 4),
                   .bits = byte_at(data, 8),
                   .color = static_cast<PngColor>(color),
                   .interlaced = byte_at(data, 12) == 1};
  if (header.width == 0 || header.height == 0 || header.width > kSizeMax ||
      header.height > kSizeMax)
    return Failure{
        .message = fmt::format("the PNG says it has {} x {} pixels", header.width, header.height)};
  const bool known = color == 0 || color == 2 || color == 3 || color == 4 || color == 6;
  if (!known || !bits_fit(header.color, header.bits))
    return Failure{.message = fmt::format("the PNG has color type {} with {} bits, which does not "
                                          "exist",
                                          color, header.bits)};
  if (byte_at(data, 10) != 0 || byte_at(data, 11) != 0 || byte_at(data, 12) > 1)
    return Failure{.message = fmt::format("the PNG is of an unknown kind: compression {}, filter "
                                          "{}, interlace {}",
                                          byte_at(data, 10), byte_at(data, 11), byte_at(data, 12))};
  return header;
}

/// Whether libpng would use this tRNS chunk.
bool transparency_fits(const PngFile& file, EncodedBytes data) {
  switch (file.header.color) {
    case PngColor::gray:
      return data.size() == 2;
    case PngColor::rgb:
      return data.size() == 6;
    case PngColor::palette:
      return !data.empty() && data.size() <= file.palette.size() / 3;
    case PngColor::gray_alpha:
    case PngColor::rgb_alpha:
      break;
  }
  return false;
}

/// Records the content of `chunk`, which precedes the pixel data.
Result<void> take_chunk(EncodedBytes bytes, const PngChunk& chunk, PngFile& file) {
  const bool palette = chunk.type == "PLTE";
  const bool transparency = chunk.type == "tRNS";
  if ((palette || transparency) && !crc_fits(bytes, chunk)) return damaged_chunk(chunk);
  if (palette) {
    const std::size_t size = chunk.data.size();
    if (file.header.color == PngColor::palette &&
        (size == 0 || size % 3 != 0 || size > kPaletteMax))
      return Failure{.message = fmt::format("the PNG has a palette of {} bytes", size)};
    file.odd = file.odd || !file.palette.empty() || !file.transparency.empty();
    file.palette = chunk.data;
  } else if (transparency) {
    if (!transparency_fits(file, chunk.data) || !file.transparency.empty()) {
      file.odd = true;
    } else {
      file.transparency = chunk.data;
    }
  } else if (chunk.type == "eXIf") {
    file.exif = chunk.data;
  } else if (chunk.type == "IEND") {
    return Failure{.message = "the PNG has no pixel data"};
  } else if (chunk.type[0] <= 'Z') {
    return Failure{.message =
                       fmt::format("the PNG needs a reader that knows its chunk {}", chunk.type)};
  }
  return {};
}

/// Everything before the pixel data.
Result<PngFile> read_front(EncodedBytes bytes) {
  const Result<PngHeader> header = read_header(bytes);
  if (!header) return header.failure();
  PngFile file{.header = *header};
  std::size_t at = kSignature + kChunkFrame + kHeaderData;
  while (true) {
    const Result<PngChunk> chunk = chunk_at(bytes, at);
    if (!chunk) {
      // Only the front is needed: pixel data may be truncated.
      if (bytes.size() - at < 8 || !has_text(bytes, at + 4, "IDAT")) return chunk.failure();
      break;
    }
    if ((*chunk).type == "IDAT") break;
    if (const auto taken = take_chunk(bytes, *chunk, file); !taken) return taken.failure();
    at += kChunkFrame + (*chunk).data.size();
  }
  file.pixel_data_at = at;
  if (file.header.color == PngColor::palette && file.palette.empty())
    return Failure{.message = "the PNG needs a palette (PLTE) and has none"};
  return file;
}

/// Checks the chunks from the pixel data to the end, and measures the pixel data.
Result<void> check_rest(EncodedBytes bytes, PngFile& file) {
  bool in_pixels = true;
  for (std::size_t at = file.pixel_data_at;;) {
    const Result<PngChunk> chunk = chunk_at(bytes, at);
    if (!chunk) return chunk.failure();
    const bool pixels = (*chunk).type == "IDAT";
    const bool end = (*chunk).type == "IEND";
    if ((pixels || end) && !crc_fits(bytes, *chunk)) return damaged_chunk(*chunk);
    if (end) return {};
    if (pixels && in_pixels) {
      ++file.pixel_chunks;
      file.pixel_bytes += (*chunk).data.size();
    } else {
      in_pixels = false;
      file.odd = file.odd || pixels || (*chunk).type[0] <= 'Z';
    }
    at += kChunkFrame + (*chunk).data.size();
  }
}

std::optional<Failure> claims_too_much(const PngFile& file) {
  // DEFLATE expands one byte to at most 1032.
  constexpr std::uint64_t kRatioMax = 1032;
  const std::uint64_t most = (file.pixel_bytes + 16) * kRatioMax;
  if (file.header.row_bytes() <= most / file.header.height) return {};
  return Failure{.message = fmt::format(
                     "the PNG claims {} x {} pixels, but its {} bytes of pixel data cannot hold "
                     "them",
                     file.header.width, file.header.height, file.pixel_bytes)};
}

#ifdef PENSTOCK_DEFLATE

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* each) const { libdeflate_free_decompressor(each); }
};

libdeflate_decompressor* my_decompressor() {
  thread_local const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor(
      libdeflate_alloc_decompressor());
  return decompressor.get();
}

/// The pixel data in one piece: in place, or copied if it is in several chunks.
EncodedBytes gather_pixel_data(EncodedBytes bytes, const PngFile& file, Scratch& scratch) {
  std::size_t at = file.pixel_data_at;
  if (file.pixel_chunks == 1) return bytes.subspan(at + 8, file.pixel_bytes);
  std::byte* const all = scratch.allocate(file.pixel_bytes);
  std::size_t used = 0;
  for (std::size_t chunk = 0; chunk < file.pixel_chunks; ++chunk) {
    const std::size_t length = big32(bytes, at);
    if (length > 0) std::memcpy(all + used, bytes.data() + at + 8, length);
    used += length;
    at += kChunkFrame + length;
  }
  return {all, used};
}

struct InflatedRows {
  std::uint8_t* data = nullptr;  // each row: a filter byte and `stride - 1` bytes
  std::size_t stride = 0;
};

/// Whether the rows are complete and only their checksum differs. For data that libdeflate refuses
/// without a reason.
bool sum_differs(libdeflate_decompressor* decompressor, EncodedBytes packed, std::uint8_t* rows,
                 std::size_t size) {
  constexpr std::size_t kFront = 2;
  constexpr std::size_t kSum = 4;
  if (packed.size() < kFront + kSum) return false;
  std::size_t used = 0;
  if (libdeflate_deflate_decompress_ex(decompressor, packed.data() + kFront,
                                       packed.size() - kFront - kSum, rows, size, &used,
                                       nullptr) != LIBDEFLATE_SUCCESS)
    return false;
  return big32(packed, kFront + used) != libdeflate_adler32(1, rows, size);
}

/// Nullopt if libpng must decide.
Result<std::optional<InflatedRows>> inflate_rows(EncodedBytes bytes, const PngFile& file,
                                                 Scratch& scratch) {
  constexpr std::nullopt_t kAskLibpng = std::nullopt;
  const EncodedBytes packed = gather_pixel_data(bytes, file, scratch);
  const std::size_t stride = 1 + file.header.row_bytes();
  const std::size_t size = stride * file.header.height;
  auto* const rows = reinterpret_cast<std::uint8_t*>(scratch.allocate(size + Pixels::kSlack));
  libdeflate_decompressor* const decompressor = my_decompressor();
  if (decompressor == nullptr) return std::optional<InflatedRows>(kAskLibpng);
  // Nothing may follow the rows, and the checksum (Adler-32) must match.
  if (libdeflate_zlib_decompress(decompressor, packed.data(), packed.size(), rows, size, nullptr) !=
      LIBDEFLATE_SUCCESS) {
    if (sum_differs(decompressor, packed, rows, size)) return wrong_png_sum();
    return std::optional<InflatedRows>(kAskLibpng);
  }
  return std::optional<InflatedRows>(InflatedRows{.data = rows, .stride = stride});
}

/// Unfilters the bytes that `part` depends on: nothing below it, nothing to its right, and of the
/// rows above only those since the last one that does not depend on the row above.
Result<void> unfilter(const InflatedRows& rows, const Region& part, std::size_t pixel_bytes,
                      Scratch& scratch) {
  const auto top = static_cast<std::size_t>(part.y);
  const auto bottom = static_cast<std::size_t>(part.y + part.height);
  std::size_t first = 0;
  for (std::size_t y = 0; y < bottom; ++y) {
    const std::uint8_t filter = rows.data[y * rows.stride];
    if (filter > kPngFiltersMax) {
      return Failure{.message = fmt::format("the PNG is damaged: row {} has filter {}, but there "
                                            "are only 0 to {}",
                                            y, filter, kPngFiltersMax)};
    }
    if (filter <= 1 && y <= top) first = y;
  }
  const std::size_t bytes = static_cast<std::size_t>(part.x + part.width) * pixel_bytes;
  std::uint8_t* const row = rows.data + first * rows.stride;
  const std::uint8_t* above = nullptr;
  if (first == 0) {
    std::byte* const zeros = scratch.allocate(bytes + kUnfilterSlack);
    std::memset(zeros, 0, bytes + kUnfilterSlack);
    above = reinterpret_cast<const std::uint8_t*>(zeros);
  } else {
    above = row - rows.stride + 1;
  }
  unfilter_rows(row, rows.stride, bottom - first, above, bytes, pixel_bytes);
  return {};
}

/// Looks up colors, with alpha if the file has it and `alpha` is set.
Pixels look_up(const Pixels& indices, const PngFile& file, bool alpha, Scratch& scratch) {
  // Numbers beyond the palette are black and opaque, as in libpng.
  std::array<std::array<std::uint8_t, 4>, 256> colors;
  colors.fill({0, 0, 0, 255});
  for (std::size_t i = 0; i < file.palette.size() / 3; ++i)
    std::memcpy(colors.at(i).data(), file.palette.data() + i * 3, 3);
  for (std::size_t i = 0; i < file.transparency.size(); ++i)
    colors.at(i)[3] = static_cast<std::uint8_t>(byte_at(file.transparency, i));
  Pixels pixels = indices;
  pixels.channels = alpha && !file.transparency.empty() ? 4 : 3;
  const auto channels = static_cast<std::size_t>(pixels.channels);
  pixels.stride = static_cast<std::size_t>(pixels.width) * channels;
  std::byte* const out = allocate_rows(pixels.stride, pixels.height, scratch);
  pixels.data = out;
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const auto row = static_cast<std::size_t>(y);
    const auto* from = reinterpret_cast<const std::uint8_t*>(indices.data + row * indices.stride);
    auto* to = out + row * pixels.stride;
    // Writes four bytes each time: the next pixel, or the slack, overwrites the fourth.
    for (std::int64_t x = 0; x < pixels.width; ++x, to += channels)
      std::memcpy(to, colors[from[x]].data(), 4);
  }
  return pixels;
}

/// Nullopt if libpng must decide.
std::optional<Result<Pixels>> decode_fast(EncodedBytes bytes, const PngFile& file,
                                          const StoredRequest& request, Scratch& scratch) {
  const PngHeader& header = file.header;
  const bool keyed = !file.transparency.empty() && header.color != PngColor::palette;
  const bool alpha = request.channels % 2 == 0;
  if (header.bits != 8 || header.interlaced || file.odd || (keyed && alpha)) return {};
  const auto inflated = inflate_rows(bytes, file, scratch);
  if (!inflated) return Result<Pixels>(inflated.failure());
  const std::optional<InflatedRows>& rows = *inflated;
  if (!rows) return {};
  const std::size_t samples = header.samples();
  const Region& part = request.part;
  if (const auto done = unfilter(*rows, part, samples, scratch); !done)
    return Result<Pixels>(done.failure());
  const Pixels pixels{
      .data = reinterpret_cast<const std::byte*>(rows->data) +
              static_cast<std::size_t>(part.y) * rows->stride + 1 +
              static_cast<std::size_t>(part.x) * samples,
      .width = part.width,
      .height = part.height,
      .channels = static_cast<int>(samples),
      .stride = rows->stride,
  };
  if (header.color == PngColor::palette)
    return Result<Pixels>(look_up(pixels, file, alpha, scratch));
  return Result<Pixels>(pixels);
}

#else

std::optional<Result<Pixels>> decode_fast(EncodedBytes, const PngFile&, const StoredRequest&,
                                          Scratch&) {
  return {};
}

#endif

}  // namespace

Result<ImageInfo> probe_png(EncodedBytes bytes) {
  const Result<PngFile> front = read_front(bytes);
  if (!front) return front.failure();
  const PngFile& file = *front;
  ImageInfo info;
  info.format = ImageFormat::png;
  info.width = file.header.width;
  info.height = file.header.height;
  info.bits = file.header.bits == 16 ? 16 : 8;
  info.dtype = info.bits == 16 ? Dtype::u16 : Dtype::u8;
  info.channels =
      file.header.color == PngColor::palette ? 3 : static_cast<int>(file.header.samples());
  if (!file.transparency.empty()) ++info.channels;
  if (!file.exif.empty()) info.orientation = exif_orientation(file.exif);
  return info;
}

Result<Pixels> decode_png(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                          Scratch& scratch) {
  Result<PngFile> file = read_front(bytes);
  if (!file) return file.failure();
  if (file->header.width != stored.width || file->header.height != stored.height)
    return Failure{.message = "the PNG changed between probing and decoding"};
  if (const auto checked = check_rest(bytes, *file); !checked) return checked.failure();
  if (auto failure = claims_too_much(*file)) return *std::move(failure);
  if (auto decoded = decode_fast(bytes, *file, request, scratch)) return *std::move(decoded);
  return decode_png_plainly(bytes, request, scratch);
}

}  // namespace penstock
