// What both we and libpng accept has the same pixels. CRCs are put right first, so that what lies
// behind them is tried too.
#include <cstdint>
#include <cstdlib>

#include "codec/codec.h"
#include "codec/images_for_tests.h"

namespace {

using penstock::made::Values;

void repair_crcs(Values& file) {
  std::size_t at = 8;
  while (at + 12 <= file.size()) {
    const std::size_t length = std::size_t{file[at]} << 24U | std::size_t{file[at + 1]} << 16U |
                               std::size_t{file[at + 2]} << 8U | file[at + 3];
    if (length > file.size() - at - 12) return;
    std::uint32_t crc = ~0U;
    for (std::size_t i = at + 4; i < at + 8 + length; ++i) {
      crc ^= file[i];
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ (0xedb88320U & (0U - (crc & 1U)));
    }
    for (unsigned i = 0; i < 4; ++i)
      file[at + 8 + length + i] = static_cast<std::uint8_t>(~crc >> (24U - 8U * i));
    at += 12 + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr penstock::ImageLimits kLimits = {.pixels_max = 1U << 16U};
  Values file(data, data + size);
  repair_crcs(file);
  for (const bool keep : {false, true}) {
    const auto ours =
        penstock::made::decode(file, {.channels = 0, .keep_16_bit = keep, .limits = kLimits});
    if (!ours.message.empty() || ours.info.format != penstock::ImageFormat::png ||
        ours.info.orientation != 1)
      return 0;
    const Values expected = penstock::made::png_plainly(file, keep);
    if (!expected.empty() && ours.values != expected) std::abort();
    const penstock::Region part{.x = ours.info.width / 2,
                                .y = ours.info.height / 2,
                                .width = (ours.info.width + 1) / 2,
                                .height = (ours.info.height + 1) / 2};
    const auto cut = penstock::made::decode(
        file, {.channels = 0, .region = part, .keep_16_bit = keep, .limits = kLimits});
    if (!cut.message.empty() || cut.values != penstock::made::crop(ours, part)) std::abort();
  }
  return 0;
}
