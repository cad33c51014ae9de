#pragma once
// Rows of one size, which are found by arithmetic: fixed-length records and the arrays of NumPy.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "penstock/io.h"
#include "penstock/spec.h"
#include "source/source.h"

namespace penstock {

/// How the bytes of a row become its value.
enum class RowForm : std::uint8_t {
  raw,           // a tensor of numbers
  truth,         // booleans: any byte but 0 is true
  swapped,       // numbers whose high byte comes first
  bytes,         // one value, of dtype bytes
  padded_bytes,  // the same without zeros at its end
  utf32,         // one value, of dtype string: letters of 4 bytes, without zeros at its end
  utf32_swapped,
};

/// The rows of a field in one file.
struct RowRun {
  std::uint64_t offset = 0;  // of the first row
  std::uint64_t row_bytes = 0;
  RowForm form = RowForm::raw;
  std::shared_ptr<const Bytes> memory = {};  // where they are, if not in the file
};

struct FixedRows {
  struct File {
    std::shared_ptr<const FileHandle> handle;
    std::string name;          // relative to the folder that all files share
    std::uint64_t end = 0;     // rows of this file and those before
    std::vector<RowRun> runs;  // one for each field
  };
  std::string word;
  ElementSpec spec;
  std::vector<File> files;
  Json arguments;
};

/// A source of these rows. Everything is within the files, as their handles know them.
std::shared_ptr<const Source> make_fixed_rows(FixedRows rows);

}  // namespace penstock
