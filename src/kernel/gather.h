#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock {

/// out[i] = rows[numbers[i]], each `row_bytes` long. Prefetches rows well before they are copied,
/// since numbers in shuffled order miss every cache.
void gather_rows(const std::byte* rows, std::size_t row_bytes,
                 std::span<const std::uint64_t> numbers, std::byte* out);

/// Copies the `row_bytes` at rows[i] to row places[i] of `out`; prefetches like `gather_rows`.
void scatter_rows_from(std::span<const std::byte* const> rows, std::size_t row_bytes,
                       std::span<const std::uint32_t> places, std::byte* out);

}  // namespace penstock
