#pragma once
// Images written by the libraries themselves, and decoded by them in the simplest way, as
// references for tests and fuzz targets.

#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "sample/scratch.h"

namespace penstock::made {

using Values = std::vector<std::uint8_t>;

inline constexpr ImageLimits kNoLimits{.pixels_max = ~std::uint64_t{0},
                                       .side_max = ~std::uint64_t{0}};

inline std::span<const std::byte> bytes_of(const Values& file) {
  return std::as_bytes(std::span(file));
}

/// Noise on a slope: every pixel differs from its neighbors.
inline Values noise(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  Values values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<std::uint8_t>(i / 7 + random() % 64);
  return values;
}

// ---- JPEG

struct JpegOptions {
  int width = 16;
  int height = 16;
  int channels = 3;  // 1, 3 or 4 (CMYK)
  int h_samples = 2;
  int v_samples = 2;
  bool progressive = false;
  bool arithmetic = false;
  bool stored_rgb = false;  // or CMYK instead of YCCK
  unsigned restart = 0;
  int orientation = 0;  // 0: no EXIF
};

inline Values exif_block(int orientation, bool little = true) {
  if (little)
    return {'I',
            'I',
            42,
            0,
            8,
            0,
            0,
            0,
            1,
            0,
            0x12,
            0x01,
            3,
            0,
            1,
            0,
            0,
            0,
            static_cast<std::uint8_t>(orientation),
            0,
            0,
            0,
            0,
            0,
            0,
            0};
  return {'M',  'M',  0, 42, 0, 0, 0, 8, 0, 1,
          0x01, 0x12, 0, 3,  0, 0, 0, 1, 0, static_cast<std::uint8_t>(orientation),
          0,    0,    0, 0,  0, 0};
}

inline Values jpeg(const JpegOptions& options, const Values& pixels) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &out, &size);
  cinfo.image_width = static_cast<JDIMENSION>(options.width);
  cinfo.image_height = static_cast<JDIMENSION>(options.height);
  cinfo.input_components = options.channels;
  cinfo.in_color_space = options.channels == 1   ? JCS_GRAYSCALE
                         : options.channels == 3 ? JCS_RGB
                                                 : JCS_CMYK;
  jpeg_set_defaults(&cinfo);
  if (options.channels == 3 && options.stored_rgb) jpeg_set_colorspace(&cinfo, JCS_RGB);
  if (options.channels == 4 && !options.stored_rgb) jpeg_set_colorspace(&cinfo, JCS_YCCK);
  jpeg_set_quality(&cinfo, 90, TRUE);
  cinfo.comp_info[0].h_samp_factor = options.h_samples;
  cinfo.comp_info[0].v_samp_factor = options.v_samples;
  if (options.channels == 4 && !options.stored_rgb) {
    cinfo.comp_info[3].h_samp_factor = options.h_samples;
    cinfo.comp_info[3].v_samp_factor = options.v_samples;
  }
  if (options.channels == 1)
    cinfo.comp_info[0].h_samp_factor = cinfo.comp_info[0].v_samp_factor = 1;
  if (options.progressive) jpeg_simple_progression(&cinfo);
  cinfo.arith_code = options.arithmetic ? TRUE : FALSE;
  cinfo.restart_interval = options.restart;
  jpeg_start_compress(&cinfo, TRUE);
  if (options.orientation != 0) {
    Values marker = {'E', 'x', 'i', 'f', 0, 0};
    const Values block = exif_block(options.orientation, options.orientation % 2 == 0);
    marker.insert(marker.end(), block.begin(), block.end());
    jpeg_write_marker(&cinfo, JPEG_APP0 + 1, marker.data(), static_cast<unsigned>(marker.size()));
  }
  const std::size_t stride =
      static_cast<std::size_t>(options.width) * static_cast<std::size_t>(options.channels);
  while (cinfo.next_scanline < cinfo.image_height) {
    auto* row = const_cast<unsigned char*>(pixels.data() + cinfo.next_scanline * stride);
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  Values file(out, out + size);
  std::free(out);  // NOLINT: libjpeg's
  return file;
}

inline Values jpeg(const JpegOptions& options) {
  return jpeg(options, noise(static_cast<std::size_t>(options.width * options.height) *
                             static_cast<std::size_t>(options.channels)));
}

/// A full decode as in libjpeg's example.
inline Values jpeg_plainly(const Values& file, J_COLOR_SPACE color, unsigned denominator = 1) {
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, file.data(), file.size());
  jpeg_read_header(&cinfo, TRUE);
  cinfo.out_color_space = color;
  cinfo.scale_denom = denominator;
  jpeg_start_decompress(&cinfo);
  const std::size_t stride = cinfo.output_width * static_cast<std::size_t>(cinfo.output_components);
  Values pixels(stride * cinfo.output_height);
  while (cinfo.output_scanline < cinfo.output_height) {
    unsigned char* row = pixels.data() + cinfo.output_scanline * stride;
    jpeg_read_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return pixels;
}

// ---- PNG

struct PngOptions {
  unsigned width = 16;
  unsigned height = 16;
  int bits = 8;
  int color = PNG_COLOR_TYPE_RGB;
  bool interlaced = false;
  int filters = PNG_ALL_FILTERS;
  bool transparency = false;
  std::size_t palette = 256;
  std::size_t chunk = 8192;  // bytes of one IDAT
  int orientation = 0;       // 0: no EXIF
};

inline void set_png_colors(png_structp png, png_infop info, const PngOptions& options) {
  std::vector<png_color> palette(std::min<std::size_t>(options.palette, 1U << options.bits));
  for (std::size_t i = 0; i < palette.size(); ++i)
    palette[i] = {static_cast<png_byte>(i * 3), static_cast<png_byte>(255 - i),
                  static_cast<png_byte>(i ^ 0x5aU)};
  if (options.color == PNG_COLOR_TYPE_PALETTE)
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  if (!options.transparency) return;
  Values alpha = noise(std::max<std::size_t>(1, palette.size() / 2));
  png_color_16 key{};
  key.gray = 1;
  key.red = key.green = key.blue = 1;
  png_set_tRNS(png, info, alpha.data(), static_cast<int>(alpha.size()), &key);
}

/// `pixels` are rows packed as PNG stores them; none: noise, in which with few bits all values
/// occur, including color keys.
inline Values png(const PngOptions& options, Values pixels = {}) {
  Values file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep data, std::size_t count) {
        auto& out = *static_cast<Values*>(png_get_io_ptr(p));
        out.insert(out.end(), data, data + count);
      },
      nullptr);
  png_set_compression_buffer_size(png, options.chunk);
  png_set_IHDR(png, info, options.width, options.height, options.bits, options.color,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
  png_set_filter(png, 0, options.filters);
  set_png_colors(png, info, options);
  Values exif = exif_block(options.orientation);
  if (options.orientation != 0)
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()), exif.data());
  png_write_info(png, info);
  const std::size_t stride = png_get_rowbytes(png, info);
  if (pixels.empty()) pixels = noise(stride * options.height);
  if (options.color == PNG_COLOR_TYPE_PALETTE && options.bits == 8)
    for (auto& each : pixels) each = static_cast<std::uint8_t>(each % options.palette);
  std::vector<png_bytep> rows;
  rows.reserve(options.height);
  for (unsigned y = 0; y < options.height; ++y) rows.push_back(pixels.data() + y * stride);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

/// A full decode as in libpng's manual: 8 or 16 bits (little-endian), palettes and color keys
/// expanded. Empty if libpng refuses the file.
inline Values png_plainly(const Values& file, bool keep_16_bit) {
  struct Reader {
    png_structp png = nullptr;
    png_infop info = nullptr;
    Values pixels;
    std::vector<png_bytep> rows;
    std::span<const std::uint8_t> left;
  };
  Reader reader;
  reader.left = file;
  reader.png = png_create_read_struct(
      PNG_LIBPNG_VER_STRING, nullptr, [](png_structp png, png_const_charp) { png_longjmp(png, 1); },
      [](png_structp, png_const_charp) {});
  reader.info = png_create_info_struct(reader.png);
  if (setjmp(png_jmpbuf(reader.png)) != 0) {
    png_destroy_read_struct(&reader.png, &reader.info, nullptr);
    return {};
  }
  png_set_read_fn(reader.png, &reader, [](png_structp png, png_bytep out, std::size_t count) {
    auto& left = static_cast<Reader*>(png_get_io_ptr(png))->left;
    if (count > left.size()) png_error(png, "end");
    std::memcpy(out, left.data(), count);
    left = left.subspan(count);
  });
  png_read_info(reader.png, reader.info);
  png_set_expand(reader.png);
  if (keep_16_bit) {
    png_set_swap(reader.png);
  } else {
    png_set_strip_16(reader.png);
  }
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  const std::size_t stride = png_get_rowbytes(reader.png, reader.info);
  const std::size_t height = png_get_image_height(reader.png, reader.info);
  reader.pixels.resize(stride * height);
  for (std::size_t y = 0; y < height; ++y) reader.rows.push_back(reader.pixels.data() + y * stride);
  png_read_image(reader.png, reader.rows.data());
  png_read_end(reader.png, nullptr);
  png_destroy_read_struct(&reader.png, &reader.info, nullptr);
  return reader.pixels;
}

// ---- Decoding with penstock

/// Rows without gaps.
inline Values packed(const Pixels& pixels) {
  const std::size_t row = static_cast<std::size_t>(pixels.width) *
                          static_cast<std::size_t>(pixels.channels) * dtype_size(pixels.dtype);
  Values values(row * static_cast<std::size_t>(pixels.height));
  for (std::int64_t y = 0; y < pixels.height; ++y)
    std::memcpy(values.data() + static_cast<std::size_t>(y) * row,
                pixels.data + static_cast<std::size_t>(y) * pixels.stride, row);
  return values;
}

/// Probes and decodes; returns the message of a Failure, or "" and the pixels.
struct Decoded {
  std::string message = {};
  std::string remedy = {};
  ImageInfo info = {};
  Pixels pixels = {};
  Values values = {};
};

inline Decoded decode(std::span<const std::byte> bytes, const DecodeRequest& request = {}) {
  Scratch scratch;
  const Result<ImageInfo> info = probe_image(bytes, request.limits);
  if (!info) return {.message = info.failure().message, .remedy = info.failure().remedy};
  const Result<Pixels> pixels = decode_image(bytes, *info, request, scratch);
  if (!pixels) return {.message = pixels.failure().message, .remedy = pixels.failure().remedy};
  return {.info = *info, .pixels = *pixels, .values = packed(*pixels)};
}
inline Decoded decode(const Values& file, const DecodeRequest& request = {}) {
  return decode(bytes_of(file), request);
}

inline Values crop(const Decoded& full, const Region& part) {
  const std::size_t pixel =
      static_cast<std::size_t>(full.pixels.channels) * dtype_size(full.pixels.dtype);
  Values values;
  for (std::int64_t y = part.y; y < part.y + part.height; ++y) {
    const auto first =
        full.values.begin() + static_cast<std::ptrdiff_t>(
                                  static_cast<std::size_t>(y * full.pixels.width + part.x) * pixel);
    values.insert(
        values.end(), first,
        first + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(part.width) * pixel));
  }
  return values;
}

}  // namespace penstock::made
