#include "kernel/unfilter.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace penstock {
namespace {

/// The neighbor (left, above, above left) nearest to left + above - above_left. Written so that
/// little remains to be done once `left`, the previous byte, is known.
inline int paeth(int left, int above, int above_left) {
  const int threshold = above_left * 3 - above - left;
  const int low = std::min(left, above);
  const int high = std::max(left, above);
  const int upper = high <= threshold ? low : above_left;
  return threshold <= low ? high : upper;
}

void undo_up(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) row[i] = static_cast<std::uint8_t>(row[i] + above[i]);
}

template <std::size_t Pixel>
void undo_sub(std::uint8_t* row, std::size_t bytes) {
  for (std::size_t i = Pixel; i < bytes; ++i)
    row[i] = static_cast<std::uint8_t>(row[i] + row[i - Pixel]);
}

template <std::size_t Pixel>
void undo_average(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  for (std::size_t i = 0; i < std::min(Pixel, bytes); ++i)
    row[i] = static_cast<std::uint8_t>(row[i] + above[i] / 2);
  for (std::size_t i = Pixel; i < bytes; ++i)
    row[i] = static_cast<std::uint8_t>(row[i] + (row[i - Pixel] + above[i]) / 2);
}

template <std::size_t Pixel>
void undo_paeth(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  for (std::size_t i = 0; i < std::min(Pixel, bytes); ++i)
    row[i] = static_cast<std::uint8_t>(row[i] + above[i]);
  for (std::size_t i = Pixel; i < bytes; ++i)
    row[i] = static_cast<std::uint8_t>(row[i] + paeth(row[i - Pixel], above[i], above[i - Pixel]));
}

#ifdef __SSE2__

inline __m128i load4(const std::uint8_t* from) {
  int value = 0;
  std::memcpy(&value, from, sizeof value);
  return _mm_cvtsi32_si128(value);
}

template <std::size_t Pixel>
inline void store(std::uint8_t* to, __m128i pixel) {
  const int value = _mm_cvtsi128_si32(pixel);
  std::memcpy(to, &value, Pixel);
}

/// Processes a row pixel by pixel. `step(filtered, above)` returns the pixel; the next one is
/// loaded before this one is stored, so that the byte that a wide store overwrites is never read.
template <std::size_t Pixel, typename Step>
inline void walk(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes, Step step) {
  if (bytes < Pixel) return;
  __m128i filtered = load4(row);
  std::size_t i = 0;
  for (; i + 2 * Pixel <= bytes; i += Pixel) {
    const __m128i next = load4(row + i + Pixel);
    store<4>(row + i, step(filtered, load4(above + i)));
    filtered = next;
  }
  store<Pixel>(row + i, step(filtered, load4(above + i)));
}

template <std::size_t Pixel>
void undo_sub_wide(std::uint8_t* row, std::size_t bytes) {
  __m128i left = _mm_setzero_si128();
  walk<Pixel>(row, row, bytes,
              [&](__m128i filtered, __m128i) { return left = _mm_add_epi8(left, filtered); });
}

template <std::size_t Pixel>
void undo_average_wide(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  const __m128i one = _mm_set1_epi8(1);
  __m128i left = _mm_setzero_si128();
  walk<Pixel>(row, above, bytes, [&](__m128i filtered, __m128i up) {
    // The instruction rounds up, the filter rounds down.
    const __m128i odd = _mm_and_si128(_mm_xor_si128(left, up), one);
    const __m128i average = _mm_sub_epi8(_mm_avg_epu8(left, up), odd);
    return left = _mm_add_epi8(average, filtered);
  });
}

template <std::size_t Pixel>
void undo_paeth_wide(std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  const __m128i zero = _mm_setzero_si128();
  __m128i left = zero;
  __m128i corner = zero;
  walk<Pixel>(row, above, bytes, [&](__m128i filtered, __m128i up_bytes) {
    const __m128i up = _mm_unpacklo_epi8(up_bytes, zero);
    const __m128i base = _mm_sub_epi16(_mm_add_epi16(_mm_add_epi16(corner, corner), corner), up);
    const __m128i threshold = _mm_sub_epi16(base, left);
    const __m128i low = _mm_min_epi16(left, up);
    const __m128i high = _mm_max_epi16(left, up);
    // If both conditions hold, low and high are equal, and so is the combination.
    const __m128i take_high =
        _mm_andnot_si128(_mm_cmpgt_epi16(threshold, low), _mm_xor_si128(high, corner));
    const __m128i take_low =
        _mm_andnot_si128(_mm_cmpgt_epi16(high, threshold), _mm_xor_si128(low, corner));
    const __m128i guess = _mm_xor_si128(corner, _mm_or_si128(take_high, take_low));
    // Added as bytes: upper halves are zero and stay zero.
    left = _mm_add_epi8(guess, _mm_unpacklo_epi8(filtered, zero));
    corner = up;
    return _mm_packus_epi16(left, left);
  });
}

/// Paeth's choice for each byte. With P = corner - low and Q = high - corner (0 if negative) the
/// larger neighbor is nearest if 2 P <= Q and the smaller one if 2 Q <= P; P + Q is never more than
/// 255, so saturation changes nothing.
inline __m128i paeth_bytes(__m128i left, __m128i up, __m128i corner) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i low = _mm_min_epu8(left, up);
  const __m128i high = _mm_max_epu8(left, up);
  const __m128i p = _mm_subs_epu8(corner, low);
  const __m128i q = _mm_subs_epu8(high, corner);
  const __m128i take_high = _mm_cmpeq_epi8(_mm_subs_epu8(_mm_adds_epu8(p, p), q), zero);
  const __m128i take_low = _mm_cmpeq_epi8(_mm_subs_epu8(_mm_adds_epu8(q, q), p), zero);
  return _mm_xor_si128(corner, _mm_or_si128(_mm_and_si128(take_high, _mm_xor_si128(high, corner)),
                                            _mm_and_si128(take_low, _mm_xor_si128(low, corner))));
}

constexpr int kWave = 4;  // rows

/// Four rows in one register, each one pixel behind the row above, so that the pixels of one step
/// do not depend on each other: a single Paeth row is one long dependency chain.
template <std::size_t Pixel>
class Wave {
 public:
  Wave(std::uint8_t* row, std::size_t stride, const std::uint8_t* above, std::size_t bytes)
      : row_(row),
        stride_(static_cast<std::ptrdiff_t>(stride)),
        above_(above),
        width_(static_cast<std::ptrdiff_t>(bytes / Pixel)),
        sub_(rows_with(1)),
        up_(rows_with(2)),
        average_(rows_with(3)),
        paeth_(rows_with(4)) {}

  void run() {
    if (_mm_movemask_epi8(paeth_) == 0xffff) return walk([this](__m128i up) { return paeth(up); });
    walk([this](__m128i up) { return any(up); });
  }

 private:
  [[nodiscard]] std::uint8_t* at(int y, std::ptrdiff_t x) const {
    return row_ + y * stride_ + x * static_cast<std::ptrdiff_t>(Pixel);
  }
  static __m128i together(__m128i a, __m128i b, __m128i c, __m128i d) {
    return _mm_unpacklo_epi64(_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
  }
  [[nodiscard]] __m128i rows_with(std::uint8_t filter) const {
    const auto mask = [&](int y) { return _mm_cvtsi32_si128(*(at(y, 0) - 1) == filter ? -1 : 0); };
    return together(mask(0), mask(1), mask(2), mask(3));
  }
  /// The bytes to the left and right of a row belong to its neighbor, or are slack.
  [[nodiscard]] __m128i load(std::ptrdiff_t x) const {
    return together(load4(at(0, x)), load4(at(1, x - 1)), load4(at(2, x - 2)), load4(at(3, x - 3)));
  }

  [[nodiscard]] __m128i paeth(__m128i up) const { return paeth_bytes(left_, up, corner_); }
  [[nodiscard]] __m128i any(__m128i up) const {
    const __m128i odd = _mm_and_si128(_mm_xor_si128(left_, up), _mm_set1_epi8(1));
    const __m128i average = _mm_sub_epi8(_mm_avg_epu8(left_, up), odd);
    return _mm_or_si128(
        _mm_or_si128(_mm_and_si128(paeth_, paeth(up)), _mm_and_si128(average_, average)),
        _mm_or_si128(_mm_and_si128(up_, up), _mm_and_si128(sub_, left_)));
  }

  template <typename Guess>
  void step(__m128i above, __m128i filtered, Guess guess) {
    const __m128i up = _mm_or_si128(_mm_slli_si128(left_, 4), above);
    left_ = _mm_add_epi8(guess(up), filtered);
    corner_ = up;
  }
  template <std::size_t Bytes>
  void store_rows(std::ptrdiff_t x, int first, int last) const {
    if (first <= 0 && 0 <= last) store<Bytes>(at(0, x), left_);
    if (first <= 1 && 1 <= last) store<Bytes>(at(1, x - 1), _mm_shuffle_epi32(left_, 1));
    if (first <= 2 && 2 <= last) store<Bytes>(at(2, x - 2), _mm_shuffle_epi32(left_, 2));
    if (first <= 3 && 3 <= last) store<Bytes>(at(3, x - 3), _mm_shuffle_epi32(left_, 3));
  }

  template <typename Guess>
  void walk(Guess guess) {
    const auto above = [this](std::ptrdiff_t x) {
      return load4(above_ + x * static_cast<std::ptrdiff_t>(Pixel));
    };
    // The next pixel is loaded before a wide store overwrites its first byte.
    __m128i filtered = load(0);
    std::ptrdiff_t x = 0;
    __m128i begun = _mm_cvtsi32_si128(-1);  // rows whose first pixel has been processed
    for (; x < kWave - 1; ++x) {
      const __m128i next = load(x + 1);
      step(above(x), filtered, guess);
      left_ = _mm_and_si128(left_, begun);
      begun = _mm_or_si128(begun, _mm_slli_si128(begun, 4));
      store_rows<Pixel>(x, 0, static_cast<int>(x));
      filtered = next;
    }
    for (; x + 1 < width_; ++x) {
      const __m128i next = load(x + 1);
      step(above(x), filtered, guess);
      store_rows<4>(x, 0, kWave - 1);
      filtered = next;
    }
    for (; x < width_ + kWave - 1; ++x) {
      const __m128i next = load(x + 1);
      step(x < width_ ? above(x) : _mm_setzero_si128(), filtered, guess);
      store_rows<Pixel>(x, static_cast<int>(x - width_ + 1), kWave - 1);
      filtered = next;
    }
  }

  std::uint8_t* row_;
  std::ptrdiff_t stride_;
  const std::uint8_t* above_;
  std::ptrdiff_t width_;
  __m128i sub_, up_, average_, paeth_;  // rows with that filter
  __m128i left_ = _mm_setzero_si128();
  __m128i corner_ = _mm_setzero_si128();
};

#endif

template <std::size_t Pixel>
void undo(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above, std::size_t bytes) {
  switch (filter) {
    case 0:
      return;
    case 2:
      return undo_up(row, above, bytes);
#ifdef __SSE2__
    case 1:
      if constexpr (Pixel >= 3) return undo_sub_wide<Pixel>(row, bytes);
      return undo_sub<Pixel>(row, bytes);
    case 3:
      if constexpr (Pixel >= 3) return undo_average_wide<Pixel>(row, above, bytes);
      return undo_average<Pixel>(row, above, bytes);
    default:
      if constexpr (Pixel >= 3) return undo_paeth_wide<Pixel>(row, above, bytes);
      return undo_paeth<Pixel>(row, above, bytes);
#else
    case 1:
      return undo_sub<Pixel>(row, bytes);
    case 3:
      return undo_average<Pixel>(row, above, bytes);
    default:
      return undo_paeth<Pixel>(row, above, bytes);
#endif
  }
}

}  // namespace

void unfilter_row(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above,
                  std::size_t bytes, std::size_t pixel_bytes) {
  switch (pixel_bytes) {
    case 1:
      return undo<1>(filter, row, above, bytes);
    case 2:
      return undo<2>(filter, row, above, bytes);
    case 3:
      return undo<3>(filter, row, above, bytes);
    default:
      return undo<4>(filter, row, above, bytes);
  }
}

void unfilter_rows(std::uint8_t* first, std::size_t stride, std::size_t count,
                   const std::uint8_t* above, std::size_t bytes, std::size_t pixel_bytes) {
  for (std::size_t y = 0; y < count;) {
    std::uint8_t* const row = first + y * stride + 1;
    std::size_t taken = 1;
#ifdef __SSE2__
    // Average and Paeth are slow one row at a time; with two of them among four rows the wave is
    // faster.
    const auto slow = [&](std::size_t k) { return first[(y + k) * stride] >= 3 ? 1 : 0; };
    if (pixel_bytes >= 3 && y + kWave <= count && bytes >= kWave * pixel_bytes &&
        slow(0) + slow(1) + slow(2) + slow(3) >= 2) {
      pixel_bytes == 3 ? Wave<3>(row, stride, above, bytes).run()
                       : Wave<4>(row, stride, above, bytes).run();
      taken = kWave;
    }
#endif
    if (taken == 1) unfilter_row(row[-1], row, above, bytes, pixel_bytes);
    above = row + (taken - 1) * stride;
    y += taken;
  }
}

void unfilter_row_plainly(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above,
                          std::size_t bytes, std::size_t pixel_bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    const int a = i < pixel_bytes ? 0 : row[i - pixel_bytes];
    const int b = above[i];
    const int c = i < pixel_bytes ? 0 : above[i - pixel_bytes];
    int guess = 0;
    if (filter == 1) guess = a;
    if (filter == 2) guess = b;
    if (filter == 3) guess = (a + b) / 2;
    if (filter == 4) {
      const int p = a + b - c;
      const int from_a = std::abs(p - a);
      const int from_b = std::abs(p - b);
      const int from_c = std::abs(p - c);
      guess = from_b <= from_c ? b : c;
      if (from_a <= from_b && from_a <= from_c) guess = a;
    }
    row[i] = static_cast<std::uint8_t>(row[i] + guess);
  }
}

}  // namespace penstock
