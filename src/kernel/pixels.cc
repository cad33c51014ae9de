#include "kernel/pixels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace penstock {
namespace {

template <typename T, int Channels>
void widen(const T* in, std::size_t count, bool mirrored, float* out) {
  const std::ptrdiff_t step = mirrored ? -4 : 4;
  if (mirrored) out += 4 * (count - 1);
  for (std::size_t i = 0; i < count; ++i, out += step, in += Channels) {
    for (int c = 0; c < Channels; ++c) out[c] = static_cast<float>(in[c]);
    for (int c = Channels; c < 4; ++c) out[c] = 0;
  }
}

template <typename T>
void widen(const std::byte* bytes, int channels, std::size_t count, bool mirrored, float* out) {
  const auto* const in = reinterpret_cast<const T*>(bytes);
  switch (channels) {
    case 1:
      return widen<T, 1>(in, count, mirrored, out);
    case 2:
      return widen<T, 2>(in, count, mirrored, out);
    case 3:
      return widen<T, 3>(in, count, mirrored, out);
    default:
      return widen<T, 4>(in, count, mirrored, out);
  }
}

template <typename T>
T narrow(float value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kMost = static_cast<float>(std::numeric_limits<T>::max());
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): never negative, and lround is a call per value
    return static_cast<T>(std::min(std::max(value, 0.0F), kMost) + 0.5F);
  } else {
    return static_cast<T>(value);
  }
}

template <typename T, std::size_t Channels>
void store(const float* row, std::size_t count, std::byte* out, std::size_t plane_bytes) {
  if (plane_bytes == 0) {
    auto* const values = reinterpret_cast<T*>(out);
    std::size_t i = 0;
    if constexpr (std::is_same_v<T, float> &&
                  Channels == 3)  // the next pixel overwrites the fourth
      for (; i + 1 < count; ++i) std::memcpy(values + i * Channels, row + 4 * i, 4 * sizeof(float));
    for (; i < count; ++i)
      for (std::size_t c = 0; c < Channels; ++c)
        values[i * Channels + c] = narrow<T>(row[4 * i + c]);
    return;
  }
  // All planes in one pass, so that the compiler transposes four pixels at a time.
  T* __restrict planes[4];
  for (std::size_t c = 0; c < 4; ++c)
    planes[c] = reinterpret_cast<T*>(out + std::min(c, Channels - 1) * plane_bytes);
  T* __restrict const first = planes[0];
  T* __restrict const second = planes[1];
  T* __restrict const third = planes[2];
  T* __restrict const fourth = planes[3];
  for (std::size_t i = 0; i < count; ++i) {
    first[i] = narrow<T>(row[4 * i]);
    if constexpr (Channels > 1) second[i] = narrow<T>(row[4 * i + 1]);
    if constexpr (Channels > 2) third[i] = narrow<T>(row[4 * i + 2]);
    if constexpr (Channels > 3) fourth[i] = narrow<T>(row[4 * i + 3]);
  }
}

template <typename T>
void store(const float* row, std::size_t count, int channels, std::byte* out,
           std::size_t plane_bytes) {
  switch (channels) {
    case 1:
      return store<T, 1>(row, count, out, plane_bytes);
    case 2:
      return store<T, 2>(row, count, out, plane_bytes);
    case 3:
      return store<T, 3>(row, count, out, plane_bytes);
    default:
      return store<T, 4>(row, count, out, plane_bytes);
  }
}

}  // namespace

void widen_pixels(const std::byte* in, Dtype dtype, int channels, std::size_t count, bool mirrored,
                  float* out) {
  if (count == 0) return;
  if (dtype == Dtype::u8) return widen<std::uint8_t>(in, channels, count, mirrored, out);
  if (dtype == Dtype::u16) return widen<std::uint16_t>(in, channels, count, mirrored, out);
  widen<float>(in, channels, count, mirrored, out);
}

void scale_pixels(float* row, std::size_t count, const Quad& scale, const Quad& bias) {
  // Copies, which cannot alias the row: so they are read only once.
  const Quad factor = scale;
  const Quad offset = bias;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 4; ++c) row[4 * i + c] = row[4 * i + c] * factor[c] + offset[c];
}

void clamp_pixels(float* row, std::size_t count, float low, float high) {
  for (std::size_t i = 0; i < 4 * count; ++i) row[i] = std::min(std::max(row[i], low), high);
}

void saturate_pixels(float* row, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) {
    float* const pixel = row + 4 * i;
    const float gray = 0.299F * pixel[0] + 0.587F * pixel[1] + 0.114F * pixel[2];
    for (int c = 0; c < 3; ++c) pixel[c] = gray + (pixel[c] - gray) * factor;
  }
}

void turn_hue(float* row, std::size_t count, float turn, float white) {
  for (std::size_t i = 0; i < count; ++i) {
    float* const pixel = row + 4 * i;
    const float r = pixel[0] / white;
    const float g = pixel[1] / white;
    const float b = pixel[2] / white;
    const float most = std::max({r, g, b});
    const float chroma = most - std::min({r, g, b});
    if (chroma <= 0) continue;
    // Sixths of the circle, from red.
    float hue = 0;
    if (most == r) {
      hue = (g - b) / chroma;
    } else if (most == g) {
      hue = (b - r) / chroma + 2;
    } else {
      hue = (r - g) / chroma + 4;
    }
    hue += 6 * turn;
    const auto channel = [&](float offset) {
      float k = std::fmod(offset + hue, 6.0F);
      if (k < 0) k += 6;
      return (most - chroma * std::clamp(std::min(k, 4 - k), 0.0F, 1.0F)) * white;
    };
    pixel[0] = channel(5);
    pixel[1] = channel(3);
    pixel[2] = channel(1);
  }
}

void store_pixels(const float* row, std::size_t count, int channels, Dtype dtype, std::byte* out,
                  std::size_t plane_bytes) {
  switch (dtype) {
    case Dtype::u8:
      return store<std::uint8_t>(row, count, channels, out, plane_bytes);
    case Dtype::u16:
      return store<std::uint16_t>(row, count, channels, out, plane_bytes);
    case Dtype::f16:
      return store<Half>(row, count, channels, out, plane_bytes);
    case Dtype::bf16:
      return store<BFloat16>(row, count, channels, out, plane_bytes);
    case Dtype::f64:
      return store<double>(row, count, channels, out, plane_bytes);
    default:
      return store<float>(row, count, channels, out, plane_bytes);
  }
}

}  // namespace penstock
