// tested in src/codec/bmp_test.cc
#include "codec/bmp_rle.h"

#include <algorithm>

namespace penstock {
namespace {

/// Where the next pixel goes; rows in stored order.
class RlePen {
 public:
  RlePen(const BmpRle& rle, const Region& part, std::byte* out)
      : rle_(rle), part_(part), out_(out) {}

  void put(unsigned color) {
    const std::int64_t seen = rle_.top_down ? y_ : rle_.height - 1 - y_;
    const std::int64_t row = seen - part_.y;
    const std::int64_t column = x_ - part_.x;
    // Pixels past the end of a row are dropped.
    if (row >= 0 && row < part_.height && column >= 0 && column < part_.width)
      out_[row * part_.width + column] = static_cast<std::byte>(color);
    x_ = std::min(x_ + 1, rle_.width);
  }
  void next_row() { move(-x_, 1); }
  void move(std::int64_t right, std::int64_t rows) {
    x_ = std::min(x_ + right, rle_.width);
    y_ = std::min(y_ + rows, rle_.height);
  }
  [[nodiscard]] bool full() const {
    return y_ >= rle_.height || (y_ == rle_.height - 1 && x_ >= rle_.width);
  }
  [[nodiscard]] std::int64_t row() const { return y_; }

 private:
  const BmpRle& rle_;
  const Region& part_;
  std::byte* out_;
  std::int64_t x_ = 0;
  std::int64_t y_ = 0;
};

}  // namespace

RleEnd unpack_bmp_rle(const BmpRle& rle, const Region& part,
                      std::chrono::steady_clock::time_point deadline, std::byte* out) {
  constexpr std::size_t kCodesAtOnce = 4096;
  RlePen pen(rle, part, out);
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(rle.codes[at]); };
  // Color `i` of a run whose colors begin at byte `at`.
  const auto color = [&](std::size_t at, unsigned i) {
    if (!rle.nibbles) return byte(at + i);
    return i % 2 == 0 ? byte(at + i / 2) >> 4U : byte(at + i / 2) & 15U;
  };
  std::size_t at = 0;
  for (std::size_t codes = 0; rle.codes.size() - at >= 2; ++codes) {
    if (codes % kCodesAtOnce == 0 && std::chrono::steady_clock::now() >= deadline)
      return RleEnd::late;
    const unsigned count = byte(at);
    const unsigned what = byte(at + 1);
    at += 2;
    if (count > 0) {  // one color, or two alternating colors, `count` times
      for (unsigned i = 0; i < count; ++i) pen.put(rle.nibbles ? color(at - 1, i % 2) : what);
    } else if (what == 0) {
      pen.next_row();
    } else if (what == 1) {
      return RleEnd::whole;
    } else if (what == 2) {
      if (rle.codes.size() - at < 2) return RleEnd::cut;
      pen.move(byte(at), byte(at + 1));
      at += 2;
    } else {  // `what` literal colors
      const std::size_t size = rle.nibbles ? (what + 1) / 2 : what;
      if (rle.codes.size() - at < size) return RleEnd::cut;
      for (unsigned i = 0; i < what; ++i) pen.put(color(at, i));
      at += std::min(size + size % 2, rle.codes.size() - at);
    }
  }
  return pen.full() ? RleEnd::whole : RleEnd::cut;
}

}  // namespace penstock
