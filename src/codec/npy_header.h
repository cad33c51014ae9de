#pragma once
// The header of an npy file: the type, order and shape of the array that follows.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/formats.h"
#include "penstock/dtype.h"
#include "penstock/result.h"
#include "penstock/tensor.h"

namespace penstock {

struct NpyHeader {
  std::string descr;           // the type, as in "<f4"
  bool fortran_order = false;  // stored column by column
  Shape shape;
  std::size_t values_at = 0;

  /// True if the values are row by row, whatever the header says: with one dimension the two orders
  /// are the same.
  [[nodiscard]] bool by_rows() const;
};

/// The first bytes of a file, which say how long its header is.
inline constexpr std::size_t kNpyStart = 12;

/// Where the values begin, by the first kNpyStart bytes. A longer header than those of arrays of
/// numbers fails.
Result<std::size_t> npy_header_bytes(EncodedBytes start);
/// Reads the header of a file, of which `bytes` may be the beginning.
Result<NpyHeader> read_npy_header(EncodedBytes bytes);

struct NpyType {
  enum class Kind : std::uint8_t { number, bytes, text };
  Kind kind = Kind::number;
  Dtype dtype = Dtype::u8;      // bytes and string for the two others
  std::size_t value_bytes = 1;  // in the file
  bool high_byte_first = false;
};
/// A Failure for objects, dates, complex numbers and others that no Dtype holds.
Result<NpyType> npy_type(std::string_view descr);

/// "the npy is stored column by column ..."
Failure npy_by_columns();

}  // namespace penstock
