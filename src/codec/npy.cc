#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "codec/formats.h"
#include "codec/npy_header.h"
#include "codec/pixels.h"

namespace penstock {
namespace {

/// An array that is an image.
struct NpyImage {
  Dtype dtype = Dtype::u8;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  std::size_t values_at = 0;
};

Failure no_image(std::string message, std::string remedy) {
  return Failure{.message = std::move(message), .remedy = std::move(remedy)};
}

Result<Dtype> dtype_of(const std::string& descr) {
  const Result<NpyType> type = npy_type(descr);
  if (!type) return type.failure();
  if ((*type).high_byte_first)
    return no_image(fmt::format("the npy has dtype '{}', with the high byte first", descr),
                    "save it with array.astype(array.dtype.newbyteorder('<'))");
  if ((*type).kind != NpyType::Kind::number)
    return no_image(fmt::format("the npy has dtype '{}', which is not one of numbers", descr),
                    "save it as integers of 8 to 64 bits or floats of 16, 32 or 64");
  return (*type).dtype;
}

Result<NpyImage> read_image_header(EncodedBytes bytes) {
  const Result<NpyHeader> header = read_npy_header(bytes);
  if (!header) return header.failure();
  const Result<Dtype> dtype = dtype_of((*header).descr);
  if (!dtype) return dtype.failure();
  const auto& shape = (*header).shape;
  if (!(*header).by_rows()) return npy_by_columns();
  if (shape.size() != 2 && shape.size() != 3)
    return no_image(
        fmt::format("the npy has the shape {}, which is not an image", shape_text(shape)),
        "save height x width, or height x width x channels");
  NpyImage image{.dtype = *dtype,
                 .height = shape[0],
                 .width = shape[1],
                 .channels = shape.size() == 3 ? shape[2] : 1,
                 .values_at = (*header).values_at};
  constexpr std::int64_t kSizeMax = std::numeric_limits<std::int32_t>::max();
  if (image.width < 1 || image.height < 1 || image.width > kSizeMax || image.height > kSizeMax)
    return no_image(fmt::format("the npy has the shape {}", shape_text(shape)), "");
  if (image.channels < 1 || image.channels > 4)
    return no_image(fmt::format("the npy has the shape {}, which has {} channels",
                                shape_text(shape), image.channels),
                    "save 1 to 4 channels, as the last dimension");
  return image;
}

}  // namespace

Result<ImageInfo> probe_npy(EncodedBytes bytes) {
  const Result<NpyImage> header = read_image_header(bytes);
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
  const Result<NpyImage> header = read_image_header(bytes);
  if (!header) return header.failure();
  if ((*header).width != stored.width || (*header).height != stored.height)
    return Failure{.message = "the npy changed between probing and decoding"};
  const std::size_t pixel =
      static_cast<std::size_t>((*header).channels) * dtype_size((*header).dtype);
  const std::size_t stride = static_cast<std::size_t>((*header).width) * pixel;
  if ((bytes.size() - (*header).values_at) / stride < static_cast<std::size_t>((*header).height))
    return no_image(
        fmt::format("the npy ends after {} bytes, in the middle of its values", bytes.size()),
        "fetch the file again: it is truncated");
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
