#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE
#include <string>

#include <jpeglib.h>

// After jpeglib.h, whose settings determine the message codes.
#include <jerror.h>

#include "base/check.h"
#include "codec/formats.h"
#include "codec/pixels.h"

namespace penstock {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A file of a few kilobytes can contain thousands of scans of a huge image, each a pass over all
/// of it.
constexpr int kScansMax = 500;

enum class JpegEnd : std::uint8_t { good, library, end_of_file, scans, time };

/// Warnings that leave the pixels intact: bytes between segments, an unusual version. After any
/// other warning pixels are missing or wrong.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
         code == JWRN_BOGUS_PROGRESSION || code == JWRN_BOGUS_ICC;
}

/// libjpeg's object, created for each image: a reused one passes the tables of an image on to the
/// next, and the pixels of a file without tables would then depend on the previous file.
class JpegDecompressor {
 public:
  explicit JpegDecompressor(SteadyClock::time_point deadline) : deadline_(deadline) {
    cinfo_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr cinfo) {
      of(cinfo).leave(
          cinfo, cinfo->err->msg_code == JWRN_JPEG_EOF ? JpegEnd::end_of_file : JpegEnd::library);
    };
    errors_.emit_message = [](j_common_ptr cinfo, int level) {
      if (level < 0 && !is_harmless(cinfo->err->msg_code)) cinfo->err->error_exit(cinfo);
    };
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = [](j_common_ptr cinfo) { of(cinfo).check_bounds(); };
    cinfo_.client_data = this;
    made_ = attempt([&] {
      jpeg_create_decompress(&cinfo_);
      cinfo_.client_data = this;
      cinfo_.progress = &progress_;
    });
  }
  ~JpegDecompressor() {
    if (made_) jpeg_destroy_decompress(&cinfo_);
  }
  JpegDecompressor(const JpegDecompressor&) = delete;
  JpegDecompressor& operator=(const JpegDecompressor&) = delete;

  /// False if libjpeg left `steps` through its error handler. Objects on the stack of `steps` must
  /// need no destructor. Not inlined: the caller's variables must not be in registers here.
  template <typename Steps>
  [[gnu::noinline]] bool attempt(Steps&& steps) {
    if (setjmp(jump_) != 0) return false;
    steps();
    return true;
  }

  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] JpegEnd end() const { return end_; }
  [[nodiscard]] const char* message() const { return message_.data(); }
  jpeg_decompress_struct& cinfo() { return cinfo_; }

 private:
  static JpegDecompressor& of(j_common_ptr cinfo) {
    return *static_cast<JpegDecompressor*>(cinfo->client_data);
  }
  [[noreturn]] void leave(j_common_ptr cinfo, JpegEnd end) {
    end_ = end;
    cinfo->err->format_message(cinfo, message_.data());
    std::longjmp(jump_, 1);  // NOLINT(modernize-avoid-setjmp-longjmp)
  }
  void check_bounds() {
    auto* const common = reinterpret_cast<j_common_ptr>(&cinfo_);
    if (cinfo_.input_scan_number > kScansMax) leave(common, JpegEnd::scans);
    // The first call checks too, so that a limit of zero holds for the smallest image.
    constexpr unsigned kCallsBetween = 16;
    if (calls_++ % kCallsBetween == 0 && SteadyClock::now() >= deadline_)
      leave(common, JpegEnd::time);
  }

  jpeg_decompress_struct cinfo_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf jump_ = {};
  std::array<char, JMSG_LENGTH_MAX> message_ = {};
  SteadyClock::time_point deadline_ = {};
  unsigned calls_ = 0;
  JpegEnd end_ = JpegEnd::good;
  bool made_ = false;
};

/// Input and output of a decode; contains only objects that longjmp may skip.
struct Job {
  EncodedBytes bytes;
  const StoredRequest& request;
  Region part;  // at the scale of the output
  Pixels pixels = {};
  std::byte* rows = nullptr;
  bool inverted_cmyk = false;
};

void choose_color(jpeg_decompress_struct& cinfo, int channels) {
  const bool has_luma =
      cinfo.jpeg_color_space == JCS_YCbCr || cinfo.jpeg_color_space == JCS_GRAYSCALE;
  if (cinfo.num_components == 4) {
    cinfo.out_color_space = JCS_CMYK;
  } else if (has_luma && channels == 1) {
    cinfo.out_color_space = JCS_GRAYSCALE;
  } else {
    cinfo.out_color_space = channels == 4 ? JCS_EXT_RGBA : JCS_RGB;
  }
}

/// The largest of 1, 2, 4 and 8 by which the region may shrink. libjpeg has other scales, which
/// take longer than no scaling at all.
std::int64_t scale_of(const StoredRequest& request) {
  if (request.fast_width <= 0 || request.fast_height <= 0) return 1;
  std::int64_t scale = 1;
  while (scale < 8 && request.part.width / (scale * 2) >= request.fast_width &&
         request.part.height / (scale * 2) >= request.fast_height)
    scale *= 2;
  return scale;
}

Region scaled(const Region& part, const jpeg_decompress_struct& cinfo, std::int64_t scale) {
  if (scale == 1) return part;
  const auto at = [scale](std::int64_t x, std::int64_t end) {
    return std::min((x + scale / 2) / scale, end);
  };
  const std::int64_t left = at(part.x, cinfo.output_width - 1);
  const std::int64_t top = at(part.y, cinfo.output_height - 1);
  // As many as requested, even if rounding would remove one.
  const std::int64_t width = std::max<std::int64_t>(
      {1, part.width / scale, at(part.x + part.width, cinfo.output_width) - left});
  const std::int64_t height = std::max<std::int64_t>(
      {1, part.height / scale, at(part.y + part.height, cinfo.output_height) - top});
  return {.x = std::min<std::int64_t>(left, cinfo.output_width - width),
          .y = std::min<std::int64_t>(top, cinfo.output_height - height),
          .width = width,
          .height = height};
}

/// Narrows the decoded columns to those of the region. If chroma is stored at half the width,
/// upsampling reads one sample to each side: two more pixels make the edges equal to those of a
/// full decode. Returns the column at which rows begin.
std::int64_t crop_columns(jpeg_decompress_struct& cinfo, const Region& part) {
  const std::int64_t margin = cinfo.max_h_samp_factor > 1 ? 2 : 0;
  const std::int64_t left = std::max<std::int64_t>(0, part.x - margin);
  const std::int64_t right =
      std::min<std::int64_t>(cinfo.output_width, part.x + part.width + margin);
  if (left == 0 && right == cinfo.output_width) return 0;
  auto x = static_cast<JDIMENSION>(left);
  auto width = static_cast<JDIMENSION>(right - left);
  jpeg_crop_scanline(&cinfo, &x, &width);
  return x;
}

void read_rows(jpeg_decompress_struct& cinfo, Job& job) {
  const Region& part = job.part;
  const auto top = static_cast<JDIMENSION>(part.y);
  const auto bottom = static_cast<JDIMENSION>(part.y + part.height);
  if (top > 0) jpeg_skip_scanlines(&cinfo, top);
  constexpr JDIMENSION kRowsAtOnce = 8;
  std::array<JSAMPROW, kRowsAtOnce> rows{};
  while (cinfo.output_scanline < bottom) {
    const JDIMENSION count = std::min(kRowsAtOnce, bottom - cinfo.output_scanline);
    for (JDIMENSION i = 0; i < count; ++i)
      rows[i] = reinterpret_cast<JSAMPROW>(job.rows) +
                (cinfo.output_scanline - top + i) * job.pixels.stride;
    if (jpeg_read_scanlines(&cinfo, rows.data(), count) == 0) {
      WARNMS(&cinfo, JWRN_JPEG_EOF);
      return;
    }
  }
  // Only a decode that reaches the end checks it; rows below the region are never decoded.
  if (bottom == cinfo.output_height) jpeg_finish_decompress(&cinfo);
}

void decode_steps(jpeg_decompress_struct& cinfo, const ImageInfo& stored, Job& job,
                  Scratch& scratch) {
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(job.bytes.data()), job.bytes.size());
  jpeg_read_header(&cinfo, TRUE);
  if (cinfo.image_width != stored.width || cinfo.image_height != stored.height)
    ERREXIT(&cinfo, JERR_BAD_LENGTH);
  choose_color(cinfo, job.request.channels);
  const std::int64_t scale = scale_of(job.request);
  cinfo.scale_num = 1;
  cinfo.scale_denom = static_cast<unsigned>(scale);
  cinfo.dct_method = JDCT_ISLOW;
  cinfo.do_fancy_upsampling = TRUE;
  // Smoothing of unfinished progressive files reads blocks outside the region.
  cinfo.do_block_smoothing = FALSE;
  jpeg_start_decompress(&cinfo);
  job.part = scaled(job.request.part, cinfo, scale);
  const std::int64_t left = crop_columns(cinfo, job.part);
  Pixels& pixels = job.pixels;
  pixels.width = job.part.width;
  pixels.height = job.part.height;
  pixels.channels = cinfo.output_components;
  const auto channels = static_cast<std::size_t>(pixels.channels);
  pixels.stride = cinfo.output_width * channels;
  job.rows = allocate_rows(pixels.stride, pixels.height, scratch);
  pixels.data = job.rows + static_cast<std::size_t>(job.part.x - left) * channels;
  job.inverted_cmyk = cinfo.saw_Adobe_marker != 0;
  read_rows(cinfo, job);
}

/// In place: three values replace four.
void cmyk_to_rgb(Job& job) {
  // Adobe's programs write inverted inks, and mark their files.
  const unsigned flip = job.inverted_cmyk ? 0U : 0xffU;
  const auto offset = job.pixels.data - job.rows;
  for (std::int64_t y = 0; y < job.pixels.height; ++y) {
    auto* const row = reinterpret_cast<std::uint8_t*>(job.rows) +
                      static_cast<std::size_t>(y) * job.pixels.stride + offset;
    const std::uint8_t* from = row;
    std::uint8_t* to = row;
    for (std::int64_t x = 0; x < job.pixels.width; ++x, from += 4, to += 3) {
      const unsigned light = from[3] ^ flip;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const unsigned product = (from[channel] ^ flip) * light + 128U;
        to[channel] = static_cast<std::uint8_t>((product + (product >> 8U)) >> 8U);
      }
    }
  }
  job.pixels.channels = 3;
}

Failure failure_of(const JpegDecompressor& decompressor, EncodedBytes bytes) {
  switch (decompressor.end()) {
    case JpegEnd::end_of_file:
      return Failure{
          .message = fmt::format("the JPEG ends after {} bytes, in the middle of its pixel data",
                                 bytes.size()),
          .remedy = "fetch the file again: it is truncated"};
    case JpegEnd::scans:
      return Failure{.message = fmt::format("the JPEG has more than {} scans", kScansMax)};
    case JpegEnd::time:
      return Failure{.message = "decoding the JPEG took longer than the limit",
                     .remedy = "raise time_max if such files are meant to be read"};
    case JpegEnd::good:
    case JpegEnd::library:
      break;
  }
  return Failure{.message = fmt::format("the JPEG cannot be decoded: {}", decompressor.message())};
}

bool is_frame(unsigned marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/// Baseline, extended and progressive, with Huffman or arithmetic coding.
bool is_known_frame(unsigned marker) {
  return marker <= 0xc2 || marker == 0xc9 || marker == 0xca;
}

std::optional<Failure> read_frame(EncodedBytes segment, unsigned marker, ImageInfo& info) {
  if (!is_known_frame(marker)) {
    return Failure{.message = fmt::format("the JPEG is of kind SOF{}, lossless or hierarchical, "
                                          "which is not supported",
                                          marker - 0xc0),
                   .remedy = "convert it to a baseline JPEG or a PNG"};
  }
  if (segment.size() < 6) return Failure{.message = "the JPEG's frame header is too short"};
  const unsigned bits = byte_at(segment, 0);
  if (bits != 8) {
    return Failure{
        .message = fmt::format("the JPEG has {} bits per value, only 8 can be read", bits),
        .remedy = "convert it to 8 bits, or to a PNG of 16"};
  }
  info.height = big16(segment, 1);
  info.width = big16(segment, 3);
  if (info.width == 0 || info.height == 0)
    return Failure{.message =
                       fmt::format("the JPEG says it has {} x {} pixels", info.width, info.height)};
  const unsigned components = byte_at(segment, 5);
  if (components != 1 && components != 3 && components != 4)
    return Failure{.message = fmt::format("the JPEG has {} components, only 1, 3 and 4 are known",
                                          components)};
  info.channels = components == 1 ? 1 : 3;
  info.cmyk = components == 4;
  return {};
}

Failure ends_in_header(EncodedBytes bytes) {
  return Failure{
      .message = fmt::format("the JPEG ends after {} bytes, inside its header", bytes.size()),
      .remedy = "fetch the file again: it is truncated"};
}

/// The position of the next marker's code, skipping other bytes, as libjpeg does.
std::size_t next_marker(EncodedBytes bytes, std::size_t at) {
  while (at + 1 < bytes.size()) {
    if (byte_at(bytes, at) == 0xff && byte_at(bytes, at + 1) != 0xff && byte_at(bytes, at + 1) != 0)
      return at + 1;
    ++at;
  }
  return bytes.size();
}

/// A Huffman code has at least one bit, and every 8 x 8 pixels have at least one code: a file that
/// claims more is refused before memory is allocated. (Arithmetic coding could need less, but only
/// for a blank image.)
bool claims_too_much(EncodedBytes bytes, const ImageInfo& stored) {
  constexpr std::uint64_t kPixelsPerByte = 512;
  return static_cast<std::uint64_t>(stored.width) * static_cast<std::uint64_t>(stored.height) /
             kPixelsPerByte >
         bytes.size();
}

}  // namespace

Result<ImageInfo> probe_jpeg(EncodedBytes bytes) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  ImageInfo info;
  info.format = ImageFormat::jpeg;
  std::size_t at = 2;
  while (true) {
    at = next_marker(bytes, at);
    if (at >= bytes.size()) return ends_in_header(bytes);
    const unsigned marker = byte_at(bytes, at++);
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) continue;
    if (marker == 0xda) break;
    if (marker == 0xd9) return Failure{.message = "the JPEG ends before any pixel data"};
    if (bytes.size() - at < 2) return ends_in_header(bytes);
    const std::size_t length = big16(bytes, at);
    if (length < 2 || marker == 0xd8)
      return Failure{.message = fmt::format("the JPEG's header is damaged at byte {}", at)};
    if (length > bytes.size() - at) return ends_in_header(bytes);
    const EncodedBytes segment = bytes.subspan(at + 2, length - 2);
    if (is_frame(marker)) {
      if (auto failure = read_frame(segment, marker, info)) return *std::move(failure);
    } else if (marker == 0xe1 && has_text(segment, 0, kExif)) {
      info.orientation = exif_orientation(segment.subspan(kExif.size()));
    }
    at += length;
  }
  if (info.width == 0) return Failure{.message = "the JPEG has pixel data but no frame header"};
  return info;
}

Result<Pixels> decode_jpeg(EncodedBytes bytes, const ImageInfo& stored,
                           const StoredRequest& request, Scratch& scratch) {
  if (claims_too_much(bytes, stored)) {
    return Failure{.message = fmt::format("the JPEG claims {} x {} pixels, but has only {} bytes",
                                          stored.width, stored.height, bytes.size())};
  }
  JpegDecompressor decompressor(request.deadline);
  if (!decompressor.made()) return failure_of(decompressor, bytes);
  Job job{.bytes = bytes, .request = request, .part = request.part};
  if (!decompressor.attempt([&] { decode_steps(decompressor.cinfo(), stored, job, scratch); }))
    return failure_of(decompressor, bytes);
  if (job.pixels.channels == 4 && stored.cmyk) cmyk_to_rgb(job);
  return job.pixels;
}

}  // namespace penstock
