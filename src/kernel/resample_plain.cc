// tested in src/kernel/resample_test.cc
#include <algorithm>

#include "kernel/resample.h"

namespace penstock {

namespace plain {

void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out) {
  for (std::size_t i = 0; i < values; ++i) {
    std::int32_t sum = 1 << 7;
    for (std::size_t k = 0; k < taps; ++k) sum += rows[k][i] * weights[k];
    out[i] = static_cast<std::int16_t>(std::clamp(sum >> 8, -32768, 32767));
  }
}

void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out) {
  const auto width = static_cast<std::size_t>(channels);
  for (std::size_t i = 0; i < axis.count; ++i) {
    const std::int16_t* const weights = axis.fixed + i * axis.taps;
    const auto first = static_cast<std::size_t>(axis.first[i] - axis.source_first);
    for (std::size_t c = 0; c < width; ++c) {
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < axis.taps; ++k) sum += row[(first + k) * width + c] * weights[k];
      out[4 * i + c] = static_cast<float>(sum) * 0x1p-20F;
    }
  }
}

}  // namespace plain

void mix_rows(const float* const* rows, const float* weights, std::size_t taps, std::size_t values,
              float* out) {
  std::fill_n(out, values, 0.0F);
  for (std::size_t k = 0; k < taps; ++k) {
    const float* const row = rows[k];
    const float weight = weights[k];
    for (std::size_t i = 0; i < values; ++i) out[i] += row[i] * weight;
  }
}

void mix_columns(const float* row, const Axis& axis, float* out) {
  for (std::size_t i = 0; i < axis.count; ++i) {
    const float* const weights = axis.real + i * axis.taps;
    const float* const pixels = row + 4 * (axis.first[i] - axis.source_first);
    float sum[4] = {};
    for (std::size_t k = 0; k < axis.taps; ++k)
      for (std::size_t c = 0; c < 4; ++c) sum[c] += pixels[4 * k + c] * weights[k];
    std::copy_n(sum, 4, out + 4 * i);
  }
}

}  // namespace penstock
