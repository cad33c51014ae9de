#pragma once
// Small images of every kind, for the image targets to start from: made, so that no binary files
// lie here.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "codec/bmp_for_tests.h"
#include "codec/images_for_tests.h"
#include "codec/webp_for_tests.h"

namespace penstock::fuzz {

using made::Values;

struct Seed {
  std::string target;
  std::string name;
  Values file;
};
using Seeds = std::vector<Seed>;

inline Values file_of(const std::string& text, std::size_t noise = 0) {
  Values file(text.begin(), text.end());
  const Values more = made::noise(noise);
  file.insert(file.end(), more.begin(), more.end());
  return file;
}

inline void add_pngs(Seeds& seeds) {
  for (const int color : {0, 2, 3, 4, 6}) {
    for (const int bits : {1, 4, 8, 16}) {
      if ((bits < 8 && color != 0 && color != 3) || (bits == 16 && color == 3)) continue;
      for (const bool odd : {false, true}) {
        const Values file = made::png({.width = 9,
                                       .height = 6,
                                       .bits = bits,
                                       .color = color,
                                       .interlaced = odd,
                                       .transparency = odd && color < 4,
                                       .palette = 16,
                                       .chunk = 60});
        const std::string name = fmt::format("png_{}_{}_{}", color, bits, odd ? "odd" : "plain");
        seeds.push_back({"png", name, file});
        if (bits >= 8 || odd) seeds.push_back({"image", name, file});
      }
    }
  }
}

inline void add_jpegs(Seeds& seeds) {
  for (const int channels : {1, 3, 4}) {
    for (const int sampling : {11, 21, 22, 12}) {
      for (const bool progressive : {false, true}) {
        Values file = made::jpeg({.width = 19,
                                  .height = 21,
                                  .channels = channels,
                                  .h_samples = sampling / 10,
                                  .v_samples = sampling % 10,
                                  .progressive = progressive,
                                  .restart = sampling == 21 ? 1U : 0U,
                                  .orientation = sampling == 12 ? 6 : 0});
        const std::string name =
            fmt::format("jpeg_{}_{}_{}", channels, sampling, progressive ? "steps" : "once");
        if (sampling == 22) seeds.push_back({"image", name, file});
        file.insert(file.begin(), {5, 6, 7, 8});
        seeds.push_back({"jpeg", name, file});
      }
    }
  }
}

/// A progressive JPEG without its last scans: libjpeg shows what it has.
inline void add_cut_jpegs(Seeds& seeds) {
  Values file = made::jpeg({.width = 19, .height = 21, .progressive = true});
  std::vector<std::size_t> scans;
  for (std::size_t at = 0; at + 1 < file.size(); ++at)
    if (file[at] == 0xff && file[at + 1] == 0xda) scans.push_back(at);
  for (const std::size_t kept : {std::size_t{1}, scans.size() / 2, scans.size() - 1}) {
    Values cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(scans.at(kept)));
    cut.insert(cut.end(), {0xff, 0xd9});
    const std::string name = fmt::format("jpeg_{}_of_{}_scans", kept, scans.size());
    seeds.push_back({"image", name, cut});
    cut.insert(cut.begin(), {5, 6, 7, 8});
    seeds.push_back({"jpeg", name, cut});
  }
}

inline void add_bmps(Seeds& seeds) {
  for (const made::BmpOptions& options : made::every_bmp()) {
    const std::string name = fmt::format("bmp_{}_{}_{}_{}_{}", options.bits, options.packing,
                                         options.header, options.height > 0 ? "up" : "down",
                                         options.masks.empty() ? options.colors : options.masks[0]);
    seeds.push_back({"image", name, made::bmp(options)});
  }
  const Values file = made::bmp({.bits = 8, .colors = 12});
  for (const std::uint32_t offset : {0U, 54U, 60U, 200U})
    seeds.push_back(
        {"image", fmt::format("bmp_offset_{}", offset), made::with_bmp_offset(file, offset)});
}

inline void add_rest(Seeds& seeds) {
  seeds.push_back({"image", "pgm_text", file_of("P2 # gray\n3 2 15\n1 2 3\n4 5 15\n")});
  seeds.push_back({"image", "ppm_text", file_of("P3\n1 2\n255\n1 2 3\n4 5 255\n")});
  seeds.push_back({"image", "pgm", file_of("P5 4 3 255\n", 12)});
  seeds.push_back({"image", "ppm", file_of("P6 2 2 65535\n", 24)});
  seeds.push_back({"image", "pgm_16", file_of("P5 3 2 999\n", 12)});
  seeds.push_back({"image", "pbm_text", file_of("P1 # bits\n5 2\n10110 0 1 0 0 1\n")});
  seeds.push_back({"image", "pbm", file_of("P4 11 3\n", 6)});
  const std::string magic("\x93NUMPY\x01\0\x3e\0", 10);
  seeds.push_back(
      {"image", "npy_u1",
       file_of(magic + "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 3)} \n", 36)});
  seeds.push_back(
      {"image", "npy_f4",
       file_of(magic + "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n", 48)});
}

#ifdef PENSTOCK_WEBP
inline void add_webps(Seeds& seeds) {
  for (const bool lossless : {false, true})
    for (const bool alpha : {false, true})
      seeds.push_back(
          {"image",
           fmt::format("webp_{}{}", lossless ? "lossless" : "lossy", alpha ? "_alpha" : ""),
           made::webp({.width = 16, .height = 16, .alpha = alpha, .lossless = lossless})});
  seeds.push_back({"image", "webp_palette",
                   made::webp({.width = 12, .height = 10, .lossless = true, .colors = 3})});
  for (const int filter : {1, 2, 3})
    seeds.push_back(
        {"image", fmt::format("webp_alpha_filter_{}", filter),
         made::webp({.width = 40, .height = 37, .alpha = true, .alpha_filter = filter})});
  const made::WebpOptions frame{.width = 10, .height = 9, .alpha = true};
  seeds.push_back(
      {"image", "webp_animation",
       made::webp_animation(made::webp(frame), frame, {.width = 14, .height = 12, .x = 2})});
  seeds.push_back(
      {"image", "webp_turned", made::webp({.width = 9, .height = 6, .orientation = 6})});
}
#endif

inline Seeds image_seeds() {
  Seeds seeds;
  add_pngs(seeds);
  add_jpegs(seeds);
  add_cut_jpegs(seeds);
  add_bmps(seeds);
  add_rest(seeds);
#ifdef PENSTOCK_WEBP
  add_webps(seeds);
#endif
  return seeds;
}

}  // namespace penstock::fuzz
