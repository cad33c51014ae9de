// tested in src/op/encode_image_test.cc
#include "codec/image_write.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstdlib>
#include <string>

#include <jpeglib.h>

namespace penstock {
namespace {

/// libjpeg reports errors by a jump.
struct JpegErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf out{};
  char message[JMSG_LENGTH_MAX]{};
};

/// What libjpeg allocates; freed whatever happens.
struct JpegCompressor {
  jpeg_compress_struct info{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  JpegCompressor() = default;
  JpegCompressor(const JpegCompressor&) = delete;
  JpegCompressor& operator=(const JpegCompressor&) = delete;
  ~JpegCompressor() {
    jpeg_destroy_compress(&info);
    std::free(bytes);  // NOLINT: jpeg_mem_dest allocates with malloc
  }
};

/// No object with a destructor lives in here: a jump passes over it.
bool compress(JpegCompressor& jpeg, JpegErrors& errors, const PlainPixels& pixels, int quality) {
  jpeg.info.err = jpeg_std_error(&errors.manager);
  jpeg.info.client_data = &errors;
  errors.manager.error_exit = [](j_common_ptr info) {
    auto* const all = static_cast<JpegErrors*>(info->client_data);
    info->err->format_message(info, all->message);
    std::longjmp(all->out, 1);  // NOLINT: libjpeg's way
  };
  errors.manager.output_message = [](j_common_ptr) {};
  if (setjmp(errors.out) != 0) return false;  // NOLINT: libjpeg's way
  jpeg_create_compress(&jpeg.info);
  jpeg.info.client_data = &errors;
  jpeg_mem_dest(&jpeg.info, &jpeg.bytes, &jpeg.size);
  jpeg.info.image_width = static_cast<JDIMENSION>(pixels.width);
  jpeg.info.image_height = static_cast<JDIMENSION>(pixels.height);
  jpeg.info.input_components = pixels.channels;
  jpeg.info.in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg.info);
  jpeg_set_quality(&jpeg.info, quality, TRUE);
  jpeg_start_compress(&jpeg.info, TRUE);
  const auto stride =
      static_cast<std::size_t>(pixels.width) * static_cast<std::size_t>(pixels.channels);
  while (jpeg.info.next_scanline < jpeg.info.image_height) {
    const std::byte* const row = pixels.values.data() + jpeg.info.next_scanline * stride;
    // libjpeg does not write to it.
    auto* line = const_cast<JSAMPROW>(reinterpret_cast<const JSAMPLE*>(row));  // NOLINT
    jpeg_write_scanlines(&jpeg.info, &line, 1);
  }
  jpeg_finish_compress(&jpeg.info);
  return true;
}

Failure too_large(const PlainPixels& pixels, int side_max) {
  return Failure{
      fmt::format("an image of {} x {} pixels cannot be encoded", pixels.height, pixels.width),
      {},
      fmt::format("each side must have 1 to {} pixels", side_max)};
}

}  // namespace

Result<Bytes> encode_jpeg(const PlainPixels& pixels, int quality) {
  constexpr int kSideMax = 65'500;
  if (pixels.width < 1 || pixels.height < 1 || pixels.width > kSideMax || pixels.height > kSideMax)
    return too_large(pixels, kSideMax);
  JpegErrors errors;
  JpegCompressor jpeg;
  if (!compress(jpeg, errors, pixels, quality))
    return Failure{fmt::format("libjpeg cannot encode the image: {}", errors.message)};
  Bytes bytes(jpeg.size);
  std::copy_n(reinterpret_cast<const std::byte*>(jpeg.bytes), jpeg.size, bytes.begin());
  return bytes;
}

Result<Bytes> encode_png(const PlainPixels& pixels) {
  constexpr int kSideMax = 1'000'000;
  if (pixels.width < 1 || pixels.height < 1 || pixels.width > kSideMax || pixels.height > kSideMax)
    return too_large(pixels, kSideMax);
  constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                      PNG_FORMAT_RGBA};
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(pixels.width);
  image.height = static_cast<png_uint_32>(pixels.height);
  image.format = kFormats[pixels.channels - 1];
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  Bytes bytes(size);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.values.data(), 0, nullptr) ==
      0)
    return Failure{fmt::format("libpng cannot encode the image: {}", image.message)};
  bytes.resize(size);
  return bytes;
}

}  // namespace penstock
