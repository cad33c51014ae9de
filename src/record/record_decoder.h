#pragma once
// From the bytes of a record to the fields of a sample. Every format of records has a decoder.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "penstock/block.h"
#include "penstock/result.h"
#include "sample/scratch.h"

namespace penstock {

/// The bytes of one record. Fields may be views of them if there is an owner.
struct RecordBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner = {};
};

/// Const and thread-safe. Depends on nothing but the bytes of the record.
class RecordDecoder {
 public:
  virtual ~RecordDecoder() = default;
  /// Always known.
  [[nodiscard]] virtual const ElementSpec& spec() const = 0;
  /// True if fields are views of the record, which then must have an owner.
  [[nodiscard]] virtual bool lends() const { return false; }
  /// Writes the record to row `row` of `out`, which has this spec. `scratch` is for temporary
  /// memory. A failure says what is wrong with the record; the caller adds its file, number and
  /// offset.
  virtual Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                              Scratch& scratch) const = 0;
  /// Checks the part of a file before its first record, such as a header.
  [[nodiscard]] virtual Result<void> accept(std::string_view /*preface*/) const { return {}; }
  /// What to tell users about the fields, such as how they were inferred; may be empty.
  [[nodiscard]] virtual std::string notes() const { return {}; }
  /// Where a record is in its file, for errors. The first one has the number 0.
  [[nodiscard]] virtual std::string place(std::uint64_t number, std::uint64_t offset) const {
    return fmt::format("record {} (byte {})", number, offset);
  }
  /// Adds what the values depend on besides the files: types, defaults.
  virtual void identify(Digest& digest) const = 0;
};

}  // namespace penstock
