// The table of image formats.
// tested in src/codec/codec_test.cc
#include "codec/formats.h"

#include <array>

namespace penstock {
namespace {

using std::string_view;

constexpr std::array kJpegExtensions{string_view("jpg"), string_view("jpeg")};
constexpr std::array kPngExtensions{string_view("png")};
constexpr std::array kWebpExtensions{string_view("webp")};
constexpr std::array kBmpExtensions{string_view("bmp")};
constexpr std::array kPnmExtensions{string_view("ppm"), string_view("pgm"), string_view("pbm")};
constexpr std::array kNpyExtensions{string_view("npy")};

bool begins_jpeg(EncodedBytes bytes) {
  return has_text(bytes, 0, "\xff\xd8\xff");
}
bool begins_png(EncodedBytes bytes) {
  return has_text(bytes, 0, "\x89PNG\r\n\x1a\n");
}
bool begins_webp(EncodedBytes bytes) {
  return has_text(bytes, 0, "RIFF") && has_text(bytes, 8, "WEBP");
}
bool begins_bmp(EncodedBytes bytes) {
  return has_text(bytes, 0, "BM");
}
bool begins_pnm(EncodedBytes bytes) {
  if (bytes.size() < 3 || !has_text(bytes, 0, "P")) return false;
  const unsigned kind = byte_at(bytes, 1);
  const unsigned next = byte_at(bytes, 2);
  const bool space = next == ' ' || (next >= '\t' && next <= '\r') || next == '#';
  return space && kind >= '1' && kind <= '6';
}
bool begins_npy(EncodedBytes bytes) {
  return has_text(bytes, 0, "\x93NUMPY");
}

constexpr std::array kFormats{
    FormatEntry{ImageFormat::jpeg, "JPEG", kJpegExtensions, begins_jpeg, probe_jpeg, decode_jpeg},
    FormatEntry{ImageFormat::png, "PNG", kPngExtensions, begins_png, probe_png, decode_png},
    FormatEntry{ImageFormat::webp, "WebP", kWebpExtensions, begins_webp, probe_webp, decode_webp},
    FormatEntry{ImageFormat::bmp, "BMP", kBmpExtensions, begins_bmp, probe_bmp, decode_bmp},
    FormatEntry{ImageFormat::pnm, "PPM/PGM", kPnmExtensions, begins_pnm, probe_pnm, decode_pnm},
    FormatEntry{ImageFormat::npy, "npy", kNpyExtensions, begins_npy, probe_npy, decode_npy},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kFormats.size(); ++i)
    if (static_cast<std::size_t>(kFormats[i].format) != i) return false;
  return true;
}
static_assert(in_order(), "format_entry finds a format by its number");

}  // namespace

std::span<const FormatEntry> image_formats() {
  return kFormats;
}

const FormatEntry& format_entry(ImageFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

}  // namespace penstock
