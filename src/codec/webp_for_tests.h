#pragma once
// WebP files of every kind, for tests and fuzz targets; without libwebp there are none.
#ifdef PENSTOCK_WEBP
#include <webp/decode.h>
#include <webp/encode.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/images_for_tests.h"

namespace penstock::made {

struct WebpOptions {
  int width = 21;
  int height = 19;
  bool alpha = false;
  bool lossless = false;
  /// How rows of alpha in a lossy file are stored: 0 literally, 1 as differences from the left, 2
  /// from above, 3 from both. Which one the encoder uses depends on the image and its settings;
  /// webp_alpha_filter returns it.
  int alpha_filter = 0;
  int colors = 0;  // so many at most; 0: noise
  int orientation = 0;
};

inline void append_chunk(Values& file, std::string_view name, const Values& data) {
  file.insert(file.end(), name.begin(), name.end());
  for (unsigned i = 0; i < 4; ++i)
    file.push_back(static_cast<std::uint8_t>(data.size() >> (8 * i)));
  file.insert(file.end(), data.begin(), data.end());
  if (data.size() % 2 == 1) file.push_back(0);
}

inline void set_riff_size(Values& file) {
  for (unsigned i = 0; i < 4; ++i)
    file[4 + i] = static_cast<std::uint8_t>((file.size() - 8) >> (8 * i));
}

inline Values webp_canvas(unsigned flags, int width, int height) {
  const auto low = [](int size) { return static_cast<std::uint8_t>(size - 1); };
  const auto high = [](int size) { return static_cast<std::uint8_t>((size - 1) >> 8); };
  return {static_cast<std::uint8_t>(flags),
          0,
          0,
          0,
          low(width),
          high(width),
          0,
          low(height),
          high(height),
          0};
}

/// The same image in an extended file with EXIF after it.
inline Values with_exif(const Values& simple, const WebpOptions& options) {
  Values file(simple.begin(), simple.begin() + 12);
  append_chunk(file, "VP8X", webp_canvas(0x08, options.width, options.height));
  file.insert(file.end(), simple.begin() + 12, simple.end());
  append_chunk(file, "EXIF", exif_block(options.orientation));
  set_riff_size(file);
  return file;
}

/// Color noise; alpha is noise too, or a slope that suits the wanted filter best.
inline Values webp_pixels(const WebpOptions& options) {
  const int channels = options.alpha ? 4 : 3;
  Values pixels = noise(static_cast<std::size_t>(options.width * options.height) *
                        static_cast<std::size_t>(channels));
  if (options.colors > 0)
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t pixel = i / static_cast<std::size_t>(channels);
      const std::size_t color =
          (pixel * pixel / 3 + pixel / 5) % static_cast<std::size_t>(options.colors);
      pixels[i] = static_cast<std::uint8_t>(20 + color * 90 + i % 3 * 30);
    }
  if (!options.alpha || options.alpha_filter == 0) return pixels;
  const auto slope = [&](int x, int y) {
    if (options.alpha_filter == 1) return x * 5 + y / 3 * 5;
    return options.alpha_filter == 2 ? x * 5 + y * y : x * y / 6;
  };
  for (int y = 0; y < options.height; ++y)
    for (int x = 0; x < options.width; ++x)
      pixels[static_cast<std::size_t>((y * options.width + x) * 4 + 3)] =
          static_cast<std::uint8_t>(slope(x, y));
  return pixels;
}

inline Values webp(const WebpOptions& options) {
  const Values pixels = webp_pixels(options);
  WebPConfig config;
  WebPConfigInit(&config);
  config.quality = 80;
  config.lossless = options.lossless ? 1 : 0;
  config.exact = 1;
  if (options.alpha_filter > 0) {
    config.alpha_filtering = options.alpha_filter == 1 ? 1 : 2;
    config.method = options.alpha_filter == 3 ? 6 : 4;
  }
  WebPPicture picture;
  WebPPictureInit(&picture);
  picture.width = options.width;
  picture.height = options.height;
  picture.use_argb = config.lossless;
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  if (options.alpha)
    WebPPictureImportRGBA(&picture, pixels.data(), options.width * 4);
  else
    WebPPictureImportRGB(&picture, pixels.data(), options.width * 3);
  WebPEncode(&config, &picture);
  Values file(writer.mem, writer.mem + writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&picture);
  return options.orientation == 0 ? file : with_exif(file, options);
}

/// The filter of its alpha plane; -1 if it has none.
inline int webp_alpha_filter(const Values& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t at = text.find("ALPH");
  return at == std::string_view::npos ? -1 : file[at + 8] >> 2 & 3;
}

struct AnimationOptions {
  int width = 40;  // of the canvas
  int height = 30;
  int x = 0;  // of the first frame; even
  int y = 0;
  bool alpha_flag = true;
};

/// An animation of two frames, the first of which is `first`, a result of `webp`.
inline Values webp_animation(const Values& first, const WebpOptions& frame,
                             const AnimationOptions& options) {
  Values file(first.begin(), first.begin() + 12);
  append_chunk(file, "VP8X",
               webp_canvas(options.alpha_flag ? 0x12 : 0x02, options.width, options.height));
  append_chunk(file, "ANIM", {9, 8, 7, 6, 0, 0});
  // The frame's chunks are those after the header of a simple file, or of one with VP8X and ALPH.
  std::size_t start = 12;
  if (file.size() > 12 && first[12 + 3] == 'X') start += 8 + 10;
  const auto low = [](int size) { return static_cast<std::uint8_t>(size); };
  Values data = {low(options.x / 2),
                 0,
                 0,
                 low(options.y / 2),
                 0,
                 0,
                 low(frame.width - 1),
                 0,
                 0,
                 low(frame.height - 1),
                 0,
                 0,
                 100,
                 0,
                 0,
                 0};
  data.insert(data.end(), first.begin() + static_cast<std::ptrdiff_t>(start), first.end());
  append_chunk(file, "ANMF", data);
  append_chunk(file, "ANMF", data);
  set_riff_size(file);
  return file;
}

/// The result of libwebp itself.
inline Values webp_plainly(const Values& file, std::size_t channels) {
  int width = 0;
  int height = 0;
  auto* const decode = channels == 4 ? WebPDecodeRGBA : WebPDecodeRGB;
  std::uint8_t* const pixels = decode(file.data(), file.size(), &width, &height);
  if (pixels == nullptr) return {};
  const std::size_t size =
      static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * channels;
  Values values(pixels, pixels + size);
  WebPFree(pixels);
  return values;
}

}  // namespace penstock::made
#endif
