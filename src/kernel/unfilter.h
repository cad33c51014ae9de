#pragma once
// PNG stores the difference between a row and a prediction from its neighbors; this inverts it.

#include <cstddef>
#include <cstdint>

namespace penstock {

/// Bytes after a row, and after the row above, that may be read although they are not used.
inline constexpr std::size_t kUnfilterSlack = 4;
inline constexpr std::uint8_t kPngFiltersMax = 4;  // None, Sub, Up, Average, Paeth

/// Inverts `filter` (0 to 4) of `bytes` bytes in place. `above` is the row above, already
/// unfiltered, or zeros. `pixel_bytes` is 1, 2, 3 or 4.
void unfilter_row(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above,
                  std::size_t bytes, std::size_t pixel_bytes);

/// Inverts `count` rows of `bytes` bytes that are `stride` apart, each after the byte of its
/// filter; `first` is the filter byte of the first one.
void unfilter_rows(std::uint8_t* first, std::size_t stride, std::size_t count,
                   const std::uint8_t* above, std::size_t bytes, std::size_t pixel_bytes);

/// One row, as in the standard.
void unfilter_row_plainly(std::uint8_t filter, std::uint8_t* row, const std::uint8_t* above,
                          std::size_t bytes, std::size_t pixel_bytes);

}  // namespace penstock
