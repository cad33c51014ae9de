// tested in src/kernel/resample_test.cc
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernel/resample.h"

namespace penstock {
namespace {

constexpr double kOne = 1 << 14;

double support_of(Filter filter) {
  switch (filter) {
    case Filter::nearest:
    case Filter::area:
      return 0.5;
    case Filter::bilinear:
      return 1;
    case Filter::bicubic:
      return 2;
  }
  return 1;
}

double weight_of(Filter filter, double x) {
  const double distance = std::abs(x);
  switch (filter) {
    case Filter::nearest:
      return 1;
    case Filter::area:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
    case Filter::bilinear:
      return std::max(0.0, 1 - distance);
    case Filter::bicubic:  // Keys, a = -1/2
      if (distance < 1) return (1.5 * distance - 2.5) * distance * distance + 1;
      if (distance < 2) return ((-0.5 * distance + 2.5) * distance - 4) * distance + 2;
      return 0;
  }
  return 0;
}

/// Source pixels [first, end) that contribute to result pixel `pixel`.
struct Taps {
  std::int64_t first;
  std::int64_t end;
  double center;
};
Taps taps_of(const AxisRequest& request, double scale, double stretch, std::int64_t pixel) {
  const double center = (static_cast<double>(pixel) + 0.5) * scale;
  if (request.filter == Filter::nearest) {
    const auto at =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(center)), 0, request.in - 1);
    return {at, at + 1, center};
  }
  const double support = support_of(request.filter) * stretch;
  const auto first = static_cast<std::int64_t>(std::max(0.0, center - support + 0.5));
  const auto end =
      static_cast<std::int64_t>(std::min(static_cast<double>(request.in), center + support + 0.5));
  // A narrow filter between two pixels still uses the nearer one.
  if (end <= first) {
    const auto at = std::clamp<std::int64_t>(static_cast<std::int64_t>(center), 0, request.in - 1);
    return {at, at + 1, center};
  }
  return {first, end, center};
}

/// Rounds the running sum of the weights, not each weight: no weight is off by more than one unit,
/// and their sum is exactly one.
void to_fixed(const float* real, std::size_t taps, std::int16_t* fixed) {
  double end = 0;
  long before = 0;
  for (std::size_t k = 0; k < taps; ++k) {
    end += static_cast<double>(real[k]) * kOne;
    const long rounded = std::lround(end);
    fixed[k] = static_cast<std::int16_t>(rounded - before);
    before = rounded;
  }
}

Axis compute_axis(const AxisRequest& request, Scratch& scratch) {
  const double scale = static_cast<double>(request.in) / static_cast<double>(request.out);
  const double stretch =
      (request.antialias || request.filter == Filter::area) ? std::max(1.0, scale) : 1.0;
  Axis axis;
  axis.count = static_cast<std::size_t>(request.count);
  std::int64_t most = 1;
  axis.source_first = request.in;
  for (std::int64_t i = 0; i < request.count; ++i) {
    const Taps taps = taps_of(request, scale, stretch, request.first + i);
    most = std::max(most, taps.end - taps.first);
    axis.source_first = std::min(axis.source_first, taps.first);
    axis.source_end = std::max(axis.source_end, taps.end);
  }
  axis.taps = static_cast<std::size_t>(most + (most & 1));
  auto* const first = scratch.array<std::int32_t>(axis.count);
  auto* const real = scratch.array<float>(axis.count * axis.taps);
  auto* const fixed = scratch.array<std::int16_t>(axis.count * axis.taps);
  for (std::size_t i = 0; i < axis.count; ++i) {
    const auto offset = static_cast<std::int64_t>(request.mirrored ? axis.count - 1 - i : i);
    const Taps taps = taps_of(request, scale, stretch, request.first + offset);
    first[i] = static_cast<std::int32_t>(taps.first);
    float* const weights = real + i * axis.taps;
    std::fill_n(weights, axis.taps, 0.0F);
    const auto weight_at = [&](std::int64_t k) {
      return weight_of(request.filter,
                       (static_cast<double>(taps.first + k) + 0.5 - taps.center) / stretch);
    };
    const std::int64_t count = taps.end - taps.first;
    double sum = 0;
    for (std::int64_t k = 0; k < count; ++k) sum += weight_at(k);
    for (std::int64_t k = 0; k < count; ++k)
      weights[k] = sum == 0 ? static_cast<float>(k == 0) : static_cast<float>(weight_at(k) / sum);
    to_fixed(weights, axis.taps, fixed + i * axis.taps);
  }
  axis.first = first;
  axis.real = real;
  axis.fixed = fixed;
  return axis;
}

/// Axes computed before; the oldest is replaced.
class Remembered {
 public:
  [[nodiscard]] const Axis* find(const AxisRequest& request) const {
    for (const Entry& entry : entries_)
      if (entry.axis.count > 0 && entry.request == request) return &entry.axis;
    return nullptr;
  }
  void keep(const AxisRequest& request, const Axis& axis) {
    constexpr std::size_t kWeightsMax = 4096;
    const std::size_t weights = axis.count * axis.taps;
    if (weights > kWeightsMax) return;
    Entry& entry = entries_[next_++ % kEntries];
    entry.request = request;
    entry.first.assign(axis.first, axis.first + axis.count);
    entry.real.assign(axis.real, axis.real + weights);
    entry.fixed.assign(axis.fixed, axis.fixed + weights);
    entry.axis = axis;
    entry.axis.first = entry.first.data();
    entry.axis.real = entry.real.data();
    entry.axis.fixed = entry.fixed.data();
  }

 private:
  struct Entry {
    AxisRequest request;
    Axis axis;
    std::vector<std::int32_t> first;
    std::vector<float> real;
    std::vector<std::int16_t> fixed;
  };
  static constexpr std::size_t kEntries = 4;  // rows and columns, mirrored and not
  std::array<Entry, kEntries> entries_;
  std::size_t next_ = 0;
};

template <typename T>
const T* copied(const T* values, std::size_t count, Scratch& scratch) {
  T* const copy = scratch.array<T>(count);
  std::copy_n(values, count, copy);
  return copy;
}

}  // namespace

Axis make_axis(const AxisRequest& request, Scratch& scratch) {
  thread_local Remembered remembered;
  if (const Axis* const before = remembered.find(request)) {
    Axis axis = *before;
    axis.first = copied(axis.first, axis.count, scratch);
    axis.real = copied(axis.real, axis.count * axis.taps, scratch);
    axis.fixed = copied(axis.fixed, axis.count * axis.taps, scratch);
    return axis;
  }
  const Axis axis = compute_axis(request, scratch);
  remembered.keep(request, axis);
  return axis;
}

}  // namespace penstock
