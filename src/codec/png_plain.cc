// tested in src/codec/png_test.cc
#include <fmt/format.h>
#include <png.h>

#include <array>
#include <bit>
#include <csetjmp>
#include <cstring>

#include "codec/formats.h"
#include "codec/pixels.h"

namespace penstock {
namespace {

/// The input of libpng, and the jump target for its errors.
struct Reading {
  EncodedBytes bytes;
  const StoredRequest& request;
  std::size_t at = 0;
  bool late = false;
  bool wrong_sum = false;
  std::jmp_buf jump = {};
  std::array<char, 200> message = {};
  Pixels pixels = {};
};

[[noreturn]] void leave(png_structp png, const char* message) {
  auto& reading = *static_cast<Reading*>(png_get_error_ptr(png));
  std::strncpy(reading.message.data(), message, reading.message.size() - 1);
  std::longjmp(reading.jump, 1);  // NOLINT(modernize-avoid-setjmp-longjmp)
}

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto& reading = *static_cast<Reading*>(png_get_io_ptr(png));
  if (count > reading.bytes.size() - reading.at) png_error(png, "the file is truncated");
  std::memcpy(out, reading.bytes.data() + reading.at, count);
  reading.at += count;
}

/// libpng warns if the checksum of all rows (Adler-32) does not match, and continues.
void note(png_structp png, const char* message) {
  auto& reading = *static_cast<Reading*>(png_get_error_ptr(png));
  if (std::strstr(message, "incorrect data check") != nullptr) reading.wrong_sum = true;
}

/// libpng's two objects, freed however a decode ends.
class PngReader {
 public:
  explicit PngReader(Reading& reading)
      : png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, leave, note)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ != nullptr) png_set_read_fn(png_, &reading, read_bytes);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  [[nodiscard]] bool made() const { return info_ != nullptr; }
  [[nodiscard]] png_structp png() const { return png_; }
  [[nodiscard]] png_infop info() const { return info_; }

 private:
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

void check_time(png_structp png, Reading& reading) {
  if (std::chrono::steady_clock::now() < reading.request.deadline) return;
  reading.late = true;
  png_error(png, "too late");
}

/// Values of 8 or 16 bits, palettes looked up, color keys as alpha.
int prepare(const PngReader& reader, const Reading& reading) {
  png_structp const png = reader.png();
  // Everything but pixels is skipped, above all compressed text and profiles.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_read_info(png, reader.info());
  png_set_expand(png);
  if (png_get_bit_depth(png, reader.info()) == 16) {
    if (!reading.request.keep_16_bit) {
      png_set_strip_16(png);
    } else if constexpr (std::endian::native == std::endian::little) {
      png_set_swap(png);
    }
  }
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader.info());
  return passes;
}

void read_image(const PngReader& reader, Reading& reading, Scratch& scratch) {
  png_structp const png = reader.png();
  const int passes = prepare(reader, reading);
  const Region& part = reading.request.part;
  const std::size_t stride = png_get_rowbytes(png, reader.info());
  const bool wide = png_get_bit_depth(png, reader.info()) == 16;
  Pixels& pixels = reading.pixels;
  pixels.width = part.width;
  pixels.height = part.height;
  pixels.channels = png_get_channels(png, reader.info());
  pixels.dtype = wide ? Dtype::u16 : Dtype::u8;
  pixels.stride = stride;
  const std::int64_t height = png_get_image_height(png, reader.info());
  // Interlaced rows come in several passes, each of which adds pixels.
  const std::int64_t first = passes > 1 ? 0 : part.y;
  const std::int64_t rows = passes > 1 ? height : part.height;
  const std::int64_t end = passes > 1 ? height : part.y + part.height;
  std::byte* const data = allocate_rows(stride, rows, scratch);
  std::byte* const above = first > 0 ? scratch.allocate(stride) : nullptr;
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t y = 0; y < end; ++y) {
      std::byte* const row =
          y < first ? above : data + static_cast<std::size_t>(y - first) * stride;
      if (y % 16 == 0) check_time(png, reading);
      png_read_row(png, reinterpret_cast<png_bytep>(row), nullptr);
    }
  }
  const std::size_t pixel_bytes = static_cast<std::size_t>(pixels.channels) * (wide ? 2 : 1);
  pixels.data = data + static_cast<std::size_t>(part.y - first) * stride +
                static_cast<std::size_t>(part.x) * pixel_bytes;
}

/// Not inlined: the caller's variables must not be in registers here.
[[gnu::noinline]] bool attempt(const PngReader& reader, Reading& reading, Scratch& scratch) {
  if (setjmp(reading.jump) != 0) return false;
  read_image(reader, reading, scratch);
  return true;
}

}  // namespace

Result<Pixels> decode_png_plainly(EncodedBytes bytes, const StoredRequest& request,
                                  Scratch& scratch) {
  Reading reading{.bytes = bytes, .request = request};
  const PngReader reader(reading);
  if (!reader.made()) return Failure{.message = "libpng could not be started"};
  const bool whole = attempt(reader, reading, scratch);
  if (reading.wrong_sum) return wrong_png_sum();
  if (whole) return reading.pixels;
  if (reading.late) {
    return Failure{.message = "decoding the PNG took longer than the limit",
                   .remedy = "raise time_max if such files are meant to be read"};
  }
  return Failure{.message = fmt::format("the PNG cannot be decoded: {}", reading.message.data())};
}

}  // namespace penstock
