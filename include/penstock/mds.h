#pragma once
// Folders of MosaicML Streaming.

#include <map>
#include <string>
#include <vector>

#include <penstock/dataset.h>

namespace penstock {

struct MdsOptions {
  /// The columns to read; all if empty.
  std::vector<std::string> columns = {};
  /// By column of arrays ("ndarray", "ndarray:DTYPE") that have the same shape in all samples, so
  /// that a batch of them is one array. A sample with another shape fails.
  std::map<std::string, Shape> shapes = {};
};

/// The samples that an index.json lists, in its order, from MDS shards in the same folder. Numbers
/// have their dtypes; str, json, str_int, str_float and str_decimal are strings; bytes, jpeg and
/// png are bytes; arrays are tensors, whose shapes may differ in their sizes if neither
/// the encoding nor `shapes` says them.
///
/// Shards are read at any place; nothing needs to be scanned. Throws ConfigError for columns of
/// other encodings, for shards of which there is only a compressed form, and for those that are
/// missing or not as the index says.
Dataset from_mds(const std::string& folder, const MdsOptions& options = {});

}  // namespace penstock
