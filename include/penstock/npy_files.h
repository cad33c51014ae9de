#pragma once
// Arrays in files of NumPy.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/dataset.h>

namespace penstock {

struct NpyFileOptions {
  /// The arrays of an npz to read; all of them by default.
  std::vector<std::string> fields = {};
  /// The most memory for arrays that are compressed in an npz; by default a quarter of what is
  /// available, at most 4 GiB.
  std::optional<std::uint64_t> bytes_max = {};
};

/// The rows of arrays in files written by np.save, np.savez and np.savez_compressed: one sample for
/// each index of the first dimension. Several files, which must have the same dtypes and row
/// shapes, follow each other; `paths` are as for `from_records`. A sample of an .npy is a tensor,
/// of an .npz a dict with a row of each array, which must all have the same number of rows.
///
/// Only headers are read here. Rows are read in place when they are needed, and not mapped: a file
/// that is cut short meanwhile is an error and does not end the process. Only the compressed arrays
/// of an npz are unpacked into memory, here, and their checksums compared.
///
/// Numbers whose high byte comes first are swapped; strings become bytes (dtype S) or string (U).
/// Throws ConfigError for arrays of Python objects, records, dates and complex numbers, those
/// stored column by column (Fortran order), and damaged files.
Dataset from_npy(const std::vector<std::string>& paths, const NpyFileOptions& options = {});

}  // namespace penstock
