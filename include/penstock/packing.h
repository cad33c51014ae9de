#pragma once
// How documents are packed into rows of one length.

#include <cstdint>
#include <optional>
#include <string>

namespace penstock {

enum class PackHow : std::uint8_t {
  stream,    // documents follow each other and are cut where a row ends
  best_fit,  // documents stay whole; each goes to the row with the least space in which it fits
};

/// For best_fit: what happens to a document that is longer than a row.
enum class LongDocument : std::uint8_t {
  split,   // it becomes several documents
  cut,     // only its start is used
  drop,    // it is left out
  refuse,  // ConfigError when the lengths are counted
};

/// Which tokens of a row belong together.
enum class PackAttention : std::uint8_t {
  document,  // those of a document: positions count from 0 in each, labels stay within it
  row,       // all: positions count through the row, and a document's end predicts the next one
};

struct PackOptions {
  PackHow how = PackHow::stream;
  std::optional<std::int64_t> separator = {};  // a token after each document
  LongDocument too_long = LongDocument::split;
  std::int64_t pad = 0;    // the token where a row is not full
  std::string field = {};  // the tokens of an element: whole numbers in one dimension
  std::string mask = {};   // a field with 0 for each token that is not to be predicted
  PackAttention attention = PackAttention::document;
  bool with_cu_seqlens = false;  // adds a field with the ends of the documents of a row
};

}  // namespace penstock
