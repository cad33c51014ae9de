#include "codec/pixels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"

namespace penstock {
namespace {

template <std::size_t Bytes>
void copy_turned(const Pixels& from, Orientation turn, std::byte* out, std::size_t out_stride) {
  const std::int64_t width = turn.transposed ? from.height : from.width;
  const std::int64_t height = turn.transposed ? from.width : from.height;
  const auto x_step = static_cast<std::ptrdiff_t>(Bytes) * (turn.from_right ? -1 : 1);
  const auto y_step = static_cast<std::ptrdiff_t>(from.stride) * (turn.from_bottom ? -1 : 1);
  const std::byte* const first =
      from.data + (turn.from_right ? static_cast<std::ptrdiff_t>(Bytes) * (from.width - 1) : 0) +
      (turn.from_bottom ? static_cast<std::ptrdiff_t>(from.stride) * (from.height - 1) : 0);
  const std::ptrdiff_t along = turn.transposed ? y_step : x_step;
  const std::ptrdiff_t down = turn.transposed ? x_step : y_step;
  // In tiles, so that the cache lines that a column touches are reused by the next columns.
  constexpr std::int64_t kTile = 32;
  const std::int64_t tile_width = turn.transposed ? kTile : width;
  for (std::int64_t top = 0; top < height; top += kTile) {
    const std::int64_t bottom = std::min(height, top + kTile);
    for (std::int64_t left = 0; left < width; left += tile_width) {
      const std::int64_t right = std::min(width, left + tile_width);
      for (std::int64_t y = top; y < bottom; ++y) {
        const std::byte* source = first + y * down + left * along;
        std::byte* target =
            out + static_cast<std::size_t>(y) * out_stride + static_cast<std::size_t>(left) * Bytes;
        for (std::int64_t x = left; x < right; ++x, source += along, target += Bytes)
          std::memcpy(target, source, Bytes);
      }
    }
  }
}

/// One row, value by value: the loops are short and the compiler knows both counts.
template <typename T, int From, int To>
void convert_row(const T* from, T* to, std::int64_t width) {
  constexpr T kOpaque = std::numeric_limits<T>::max();
  for (std::int64_t x = 0; x < width; ++x, from += From, to += To) {
    if constexpr (To <= 2) {
      if constexpr (From <= 2) {
        to[0] = from[0];
      } else {
        to[0] = static_cast<T>((299U * from[0] + 587U * from[1] + 114U * from[2] + 500U) / 1000U);
      }
    } else {
      to[0] = from[0];
      to[1] = from[From <= 2 ? 0 : 1];
      to[2] = from[From <= 2 ? 0 : 2];
    }
    if constexpr (To % 2 == 0) to[To - 1] = From % 2 == 0 ? from[From - 1] : kOpaque;
  }
}

template <typename T>
using RowFunction = void (*)(const T*, T*, std::int64_t);

template <typename T>
RowFunction<T> row_function(int from, int to) {
  static constexpr std::array<std::array<RowFunction<T>, 4>, 4> kTable = {{
      {convert_row<T, 1, 1>, convert_row<T, 1, 2>, convert_row<T, 1, 3>, convert_row<T, 1, 4>},
      {convert_row<T, 2, 1>, convert_row<T, 2, 2>, convert_row<T, 2, 3>, convert_row<T, 2, 4>},
      {convert_row<T, 3, 1>, convert_row<T, 3, 2>, convert_row<T, 3, 3>, convert_row<T, 3, 4>},
      {convert_row<T, 4, 1>, convert_row<T, 4, 2>, convert_row<T, 4, 3>, convert_row<T, 4, 4>},
  }};
  return kTable.at(static_cast<std::size_t>(from - 1)).at(static_cast<std::size_t>(to - 1));
}

template <typename T>
void convert_rows(const Pixels& from, const Pixels& to, std::byte* out) {
  const RowFunction<T> convert = row_function<T>(from.channels, to.channels);
  for (std::int64_t y = 0; y < from.height; ++y) {
    const auto row = static_cast<std::size_t>(y);
    convert(reinterpret_cast<const T*>(from.data + row * from.stride),
            reinterpret_cast<T*>(out + row * to.stride), from.width);
  }
}

/// Values of any dtype, only moved: the first ones of a pixel, or the first one everywhere.
void move_values(const Pixels& from, const Pixels& to, std::byte* out) {
  const std::size_t size = dtype_size(from.dtype);
  for (std::int64_t y = 0; y < from.height; ++y) {
    const std::byte* source = from.data + static_cast<std::size_t>(y) * from.stride;
    std::byte* target = out + static_cast<std::size_t>(y) * to.stride;
    for (std::int64_t x = 0; x < from.width; ++x) {
      for (int channel = 0; channel < to.channels; ++channel) {
        const std::size_t taken = from.channels <= 2 ? 0 : static_cast<std::size_t>(channel);
        std::memcpy(target, source + taken * size, size);
        target += size;
      }
      source += static_cast<std::size_t>(from.channels) * size;
    }
  }
}

}  // namespace

Orientation orientation_of(int orientation) {
  const int o = orientation;
  return {.transposed = o >= 5,
          .from_right = o == 2 || o == 3 || o == 7 || o == 8,
          .from_bottom = o == 3 || o == 4 || o == 6 || o == 7};
}

Region stored_region(const Region& seen, Orientation turn, std::int64_t width,
                     std::int64_t height) {
  Region stored = seen;
  if (turn.transposed)
    stored = {.x = seen.y, .y = seen.x, .width = seen.height, .height = seen.width};
  if (turn.from_right) stored.x = width - stored.x - stored.width;
  if (turn.from_bottom) stored.y = height - stored.y - stored.height;
  return stored;
}

std::byte* allocate_rows(std::size_t stride, std::int64_t rows, Scratch& scratch) {
  return scratch.allocate(stride * static_cast<std::size_t>(rows) + Pixels::kSlack);
}

Pixels turned(const Pixels& stored, Orientation turn, Scratch& scratch) {
  if (!turn.transposed && !turn.from_right && !turn.from_bottom) return stored;
  Pixels seen = stored;
  if (turn.transposed) std::swap(seen.width, seen.height);
  const std::size_t bytes = dtype_size(stored.dtype) * static_cast<std::size_t>(stored.channels);
  seen.stride = static_cast<std::size_t>(seen.width) * bytes;
  std::byte* const out = allocate_rows(seen.stride, seen.height, scratch);
  seen.data = out;
  switch (bytes) {
    case 1:
      copy_turned<1>(stored, turn, out, seen.stride);
      break;
    case 2:
      copy_turned<2>(stored, turn, out, seen.stride);
      break;
    case 3:
      copy_turned<3>(stored, turn, out, seen.stride);
      break;
    case 4:
      copy_turned<4>(stored, turn, out, seen.stride);
      break;
    case 6:
      copy_turned<6>(stored, turn, out, seen.stride);
      break;
    default:
      PENSTOCK_CHECK_EQ(bytes, 8U);
      copy_turned<8>(stored, turn, out, seen.stride);
  }
  return seen;
}

bool can_convert_channels(Dtype dtype, int from, int to) {
  if (from == to || dtype == Dtype::u8 || dtype == Dtype::u16) return true;
  const bool makes_gray = from >= 3 && to <= 2;
  const bool makes_alpha = to % 2 == 0;
  return !makes_gray && !makes_alpha;
}

Pixels with_channels(const Pixels& pixels, int channels, Scratch& scratch) {
  if (pixels.channels == channels) return pixels;
  Pixels converted = pixels;
  converted.channels = channels;
  converted.stride = static_cast<std::size_t>(pixels.width) * static_cast<std::size_t>(channels) *
                     dtype_size(pixels.dtype);
  std::byte* const out = allocate_rows(converted.stride, converted.height, scratch);
  converted.data = out;
  if (pixels.dtype == Dtype::u8) {
    convert_rows<std::uint8_t>(pixels, converted, out);
  } else if (pixels.dtype == Dtype::u16) {
    convert_rows<std::uint16_t>(pixels, converted, out);
  } else {
    move_values(pixels, converted, out);
  }
  return converted;
}

}  // namespace penstock
