#pragma once
// Small images of every kind, for the image targets to start from: made, so that no binary files
// lie here.
#ifdef PENSTOCK_WEBP
#include <webp/encode.h>
#endif

#include <fmt/format.h>

#include <string>
#include <vector>

#include "codec/made_images.h"

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
        if (bits == 8) seeds.push_back({"image", name, file});
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

inline void add_bmps(Seeds& seeds) {
  const auto header = [](int height, char bits, char packing) {
    std::string text("BM\0\0\0\0\0\0\0\0\x46\0\0\0\x28\0\0\0\x05\0\0\0", 22);
    for (unsigned i = 0; i < 4; ++i)
      text += static_cast<char>(static_cast<unsigned>(height) >> (8U * i));
    text += std::string("\1\0", 2) + bits + '\0' + packing;
    return text + std::string(23, '\0');
  };
  const std::string masks("\0\0\xff\0\0\xff\0\0\xff\0\0\0\0\0\0\0", 16);
  seeds.push_back({"image", "bmp_24", file_of(header(4, 24, 0) + std::string(16, '\0'), 64)});
  seeds.push_back({"image", "bmp_32", file_of(header(-4, 32, 3) + masks, 80)});
  seeds.push_back({"image", "bmp_8", file_of(header(1, 8, 0), 256 * 4 + 8)});
}

inline void add_rest(Seeds& seeds) {
  seeds.push_back({"image", "pgm_text", file_of("P2 # gray\n3 2 15\n1 2 3\n4 5 15\n")});
  seeds.push_back({"image", "ppm_text", file_of("P3\n1 2\n255\n1 2 3\n4 5 255\n")});
  seeds.push_back({"image", "pgm", file_of("P5 4 3 255\n", 12)});
  seeds.push_back({"image", "ppm", file_of("P6 2 2 65535\n", 24)});
  const std::string magic("\x93NUMPY\x01\0\x3e\0", 10);
  seeds.push_back(
      {"image", "npy_u1",
       file_of(magic + "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 3)} \n", 36)});
  seeds.push_back(
      {"image", "npy_f4",
       file_of(magic + "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n", 48)});
#ifdef PENSTOCK_WEBP
  const Values pixels = made::noise(std::size_t{16} * 16 * 4);
  for (const bool lossless : {false, true}) {
    std::uint8_t* out = nullptr;
    const std::size_t size = lossless ? WebPEncodeLosslessRGBA(pixels.data(), 16, 16, 64, &out)
                                      : WebPEncodeRGBA(pixels.data(), 16, 16, 64, 60, &out);
    seeds.push_back({"image", lossless ? "webp_lossless" : "webp", Values(out, out + size)});
    WebPFree(out);
  }
#endif
}

inline Seeds image_seeds() {
  Seeds seeds;
  add_pngs(seeds);
  add_jpegs(seeds);
  add_bmps(seeds);
  add_rest(seeds);
  return seeds;
}

}  // namespace penstock::fuzz
