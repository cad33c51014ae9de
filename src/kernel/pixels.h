#pragma once
// Conversions of rows of pixels through an intermediate form: four floats per pixel, of which the
// first `channels` are used. A row stays in the L1 cache while it is processed.

#include <array>
#include <cstddef>
#include <cstdint>

#include "penstock/tensor.h"

namespace penstock {

using Quad = std::array<float, 4>;

/// Interleaved values to quads, forward or backward. `dtype` is u8, u16 or f32.
void widen_pixels(const std::byte* in, Dtype dtype, int channels, std::size_t count, bool mirrored,
                  float* out);

/// v * scale + bias, by channel.
void scale_pixels(float* row, std::size_t count, const Quad& scale, const Quad& bias);
void clamp_pixels(float* row, std::size_t count, float low, float high);
/// Moves away from gray (factor above 1) or toward it; 0 is gray. Rec. 601 luma.
void saturate_pixels(float* row, std::size_t count, float factor);
/// Rotates the hue by `turn` of a full circle; values are in [0, white].
void turn_hue(float* row, std::size_t count, float turn, float white);

/// Writes quads as values of `dtype`: interleaved, or with `plane_bytes` between the channels.
/// Integers are rounded to nearest and clamped to their range.
void store_pixels(const float* row, std::size_t count, int channels, Dtype dtype, std::byte* out,
                  std::size_t plane_bytes);

}  // namespace penstock
