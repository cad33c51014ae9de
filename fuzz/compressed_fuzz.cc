// Any bytes are decompressed or fail, the same in pieces of any size; the first byte chooses the
// kind. Output ends at a megabyte.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/decompressor.h"

namespace {

constexpr std::size_t kOutputMax = std::size_t{1} << 20;

struct Output {
  std::string text = {};
  std::string failure = {};
};

Output decompressed(penstock::Compression kind, std::span<const std::byte> data,
                    std::size_t in_bytes, std::size_t out_bytes) {
  const auto decompressor = penstock::Decompressor::make(kind);
  Output out;
  std::vector<std::byte> room(out_bytes);
  while (out.text.size() < kOutputMax) {
    const auto piece = data.first(std::min(data.size(), in_bytes));
    auto ran = decompressor->run(piece, room);
    if (!ran.ok()) {
      out.failure = ran.failure().message;
      return out;
    }
    if (ran->read > piece.size() || ran->written > room.size()) std::abort();
    out.text.append(reinterpret_cast<const char*>(room.data()), ran->written);
    data = data.subspan(ran->read);
    if (ran->written == room.size()) continue;
    if (ran->read != piece.size()) std::abort();
    if (!data.empty()) continue;
    if (auto end = decompressor->finish(); !end.ok()) out.failure = end.failure().message;
    return out;
  }
  out.text.resize(kOutputMax);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using penstock::Compression;
  if (size < 3) return 0;
  const auto kind = static_cast<Compression>(1 + data[0] % 3);
  if (!penstock::can_decompress(kind)) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(3);
  const Output whole = decompressed(kind, bytes, SIZE_MAX, std::size_t{1} << 16U);
  const Output pieces = decompressed(kind, bytes, 1 + data[1] % 64, 1 + std::size_t{data[2]} * 40);
  if (whole.failure.empty() != pieces.failure.empty()) std::abort();
  // What was written before a failure may differ.
  if (whole.failure.empty() && whole.text != pieces.text) std::abort();
  return 0;
}
