#pragma once
// Folders of LitData.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <penstock/dataset.h>

namespace penstock {

struct LitDataOptions {
  /// The fields to read, such as "image" or "meta/id"; all if empty.
  std::vector<std::string> fields = {};
  /// By field of arrays that have the same shape in all samples, so that a batch of them is one
  /// array. A sample with another shape fails.
  std::map<std::string, Shape> shapes = {};
  /// For chunks of tokens: samples of this many tokens that follow each other in a chunk. What is
  /// left at the end of a chunk is not read. 0: each item is a sample.
  std::uint64_t length = 0;
};

/// The items of the chunks that an index.json lists, in its order, from the same folder. A sample
/// is what was stored: a dict, a tuple (also of what was a list), both nested, or one value.
/// Numbers and bool have their dtypes, texts are strings, files (jpeg, image, video, ...) are
/// bytes, nested lists are JSON texts, arrays and tensors are tensors whose shapes may differ in
/// their sizes if `shapes` does not say them, and pictures are u8[height, width, channels].
///
/// Chunks are read at any place; nothing needs to be scanned. Throws ConfigError for fields of
/// other kinds, such as pickles, for encrypted chunks and those compressed as a whole, and for
/// chunks that are missing or not as the index says.
Dataset from_litdata(const std::string& folder, const LitDataOptions& options = {});

}  // namespace penstock
