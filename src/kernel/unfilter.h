#pragma once
// PNG stores what is left of a row after a guess from its neighbors; this undoes it.

#include <cstddef>
#include <cstdint>

namespace penstock {

/// Bytes behind a row, and behind the row above, that may be read though they are not used.
inline constexpr std::size_t kUnfilterSlack = 4;
inline constexpr std::uint8_t kPngFiltersMax = 4;  // None, Sub, Up, Average, Paeth

/// Undoes `filter` (0 to 4) of `bytes` bytes in place. `above` is the row above, undone already, or
/// zeros. `pixel_bytes` is 1, 2, 3 or 4.
void unfilter_row(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above,
                  std::size_t bytes, std::size_t pixel_bytes);

/// Undoes `count` rows of `bytes` bytes that lie `stride` apart, each behind the byte of its
/// filter; `first` is the filter byte of the first one.
void unfilter_rows(std::uint8_t* first, std::size_t stride, std::size_t count,
                   const std::uint8_t* above, std::size_t bytes, std::size_t pixel_bytes);

/// One row, as the standard writes it.
void unfilter_row_plainly(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above,
                          std::size_t bytes, std::size_t pixel_bytes);

}  // namespace penstock
