#pragma once
// Documents packed into rows of one length. A block of documents is packed by itself, so that any
// row is found by packing one block; the number of its rows depends on the lengths alone, not on
// the order of the documents.

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/packing.h"

namespace penstock {

struct PackRules {
  std::uint64_t length = 1;  // of a row
  PackHow how = PackHow::stream;
  LongDocument too_long = LongDocument::split;  // best_fit only: longer than a row
  bool separated = false;                       // each document ends with a separator
};

/// Tokens [first, first + count) of a document, at `at` of a row. A separator counts as its last
/// token.
struct DocumentPart {
  std::uint32_t document = 0;  // of the block
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t at = 0;
  bool operator==(const DocumentPart&) const = default;
};

struct PackedBlock {
  std::vector<DocumentPart> parts;   // row after row
  std::vector<std::uint32_t> first;  // the first part of each row, and the number of parts

  [[nodiscard]] std::size_t rows() const { return first.size() - 1; }
  [[nodiscard]] std::span<const DocumentPart> row(std::size_t row) const {
    return std::span(parts).subspan(first[row], first[row + 1] - first[row]);
  }
};

/// Packs documents of these lengths in the order of `order`. Empty documents are left out.
PackedBlock pack_block(std::span<const std::uint32_t> lengths, std::span<const std::uint32_t> order,
                       const PackRules& rules);

}  // namespace penstock
