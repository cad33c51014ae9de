// A region of a JPEG is that part of the full decode, however odd the file. The first four bytes
// choose the region.
#include <cstdint>
#include <cstdlib>

#include "codec/codec.h"
#include "codec/images_for_tests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr penstock::ImageLimits kLimits = {.pixels_max = 1U << 16U,
                                             .time_max = std::chrono::milliseconds(2000)};
  if (size < 4) return 0;
  const penstock::made::Values file(data + 4, data + size);
  const int channels = data[0] % 2 == 0 ? 3 : 1;
  const auto full = penstock::made::decode(file, {.channels = channels, .limits = kLimits});
  if (!full.message.empty() || full.info.format != penstock::ImageFormat::jpeg) return 0;
  penstock::Region part;
  part.x = data[0] % full.info.width;
  part.y = data[1] % full.info.height;
  part.width = 1 + data[2] % (full.info.width - part.x);
  part.height = 1 + data[3] % (full.info.height - part.y);
  const auto cut =
      penstock::made::decode(file, {.channels = channels, .region = part, .limits = kLimits});
  if (!cut.message.empty() || cut.values != penstock::made::crop(full, part)) std::abort();
  return 0;
}
