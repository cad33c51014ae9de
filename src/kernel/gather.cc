#include "kernel/gather.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

/// For sizes known to the compiler a copy is one or two instructions.
template <std::size_t Size>
void gather_fixed(const std::byte* rows, std::span<const std::uint64_t> numbers, std::byte* out) {
  constexpr std::size_t kAhead = 24;
  const std::size_t count = numbers.size();
  std::size_t i = 0;
  for (; i + kAhead < count; ++i) {
    __builtin_prefetch(rows + numbers[i + kAhead] * Size);
    std::memcpy(out + i * Size, rows + numbers[i] * Size, Size);
  }
  for (; i < count; ++i) std::memcpy(out + i * Size, rows + numbers[i] * Size, Size);
}

template <std::size_t Size>
void scatter_fixed(std::span<const std::byte* const> rows, std::span<const std::uint32_t> places,
                   std::byte* out) {
  constexpr std::size_t kAhead = 24;
  const std::size_t count = rows.size();
  std::size_t i = 0;
  for (; i + kAhead < count; ++i) {
    __builtin_prefetch(rows[i + kAhead]);
    std::memcpy(out + places[i] * Size, rows[i], Size);
  }
  for (; i < count; ++i) std::memcpy(out + places[i] * Size, rows[i], Size);
}

void prefetch_row(const std::byte* row, std::size_t row_bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kLinesMax = 8;
  const std::size_t end = std::min(row_bytes, kLinesMax * kLine);
  for (std::size_t at = 0; at < end; at += kLine) __builtin_prefetch(row + at);
}

}  // namespace

void gather_rows(const std::byte* rows, std::size_t row_bytes,
                 std::span<const std::uint64_t> numbers, std::byte* out) {
  switch (row_bytes) {
    case 0:
      return;
    case 1:
      return gather_fixed<1>(rows, numbers, out);
    case 2:
      return gather_fixed<2>(rows, numbers, out);
    case 4:
      return gather_fixed<4>(rows, numbers, out);
    case 8:
      return gather_fixed<8>(rows, numbers, out);
    case 16:
      return gather_fixed<16>(rows, numbers, out);
    default:
      break;
  }
  constexpr std::size_t kAhead = 4;
  const std::size_t count = numbers.size();
  for (std::size_t i = 0; i < std::min(kAhead, count); ++i)
    prefetch_row(rows + numbers[i] * row_bytes, row_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) prefetch_row(rows + numbers[i + kAhead] * row_bytes, row_bytes);
    std::memcpy(out + i * row_bytes, rows + numbers[i] * row_bytes, row_bytes);
  }
}

void scatter_rows_from(std::span<const std::byte* const> rows, std::size_t row_bytes,
                       std::span<const std::uint32_t> places, std::byte* out) {
  switch (row_bytes) {
    case 0:
      return;
    case 1:
      return scatter_fixed<1>(rows, places, out);
    case 2:
      return scatter_fixed<2>(rows, places, out);
    case 4:
      return scatter_fixed<4>(rows, places, out);
    case 8:
      return scatter_fixed<8>(rows, places, out);
    case 16:
      return scatter_fixed<16>(rows, places, out);
    default:
      break;
  }
  constexpr std::size_t kAhead = 4;
  const std::size_t count = rows.size();
  for (std::size_t i = 0; i < std::min(kAhead, count); ++i) prefetch_row(rows[i], row_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) prefetch_row(rows[i + kAhead], row_bytes);
    std::memcpy(out + places[i] * row_bytes, rows[i], row_bytes);
  }
}

}  // namespace penstock
