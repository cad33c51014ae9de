#include "kernel/unfilter.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace penstock {
namespace {

/// The neighbour (left, above, above left) nearest to left + above - above_left. Written so that
/// little is left to do once `left`, the byte just made, is known.
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

/// Walks a row pixel by pixel. `step(filtered, above)` gives the pixel; the next one is loaded
/// before this one is stored, so that the byte that a wide store spoils is never read.
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
    // The instruction rounds up where the filter rounds down.
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
    // Where both conditions hold, low and high are equal, and so is what is combined.
    const __m128i take_high =
        _mm_andnot_si128(_mm_cmpgt_epi16(threshold, low), _mm_xor_si128(high, corner));
    const __m128i take_low =
        _mm_andnot_si128(_mm_cmpgt_epi16(high, threshold), _mm_xor_si128(low, corner));
    const __m128i guess = _mm_xor_si128(corner, _mm_or_si128(take_high, take_low));
    // Added as bytes: upper halves are zero and stay so.
    left = _mm_add_epi8(guess, _mm_unpacklo_epi8(filtered, zero));
    corner = up;
    return _mm_packus_epi16(left, left);
  });
}

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
