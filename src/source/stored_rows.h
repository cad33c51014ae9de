#pragma once
// Rows that a store has, all of them, as a source: a saved dataset, and the cache of a stream.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/io.h"
#include "source/source.h"
#include "store/row_store.h"

namespace penstock {

/// All rows of some data, numbered from 0.
struct StoredRows {
  std::shared_ptr<RowStore> store;
  std::uint64_t rows = 0;
  ElementSpec spec;
  Digests digests;          // of the data that was stored
  std::string folder = {};  // empty: in memory
  std::string remedy = {};  // if a row is damaged
};

/// The rows as they are, or a Failure that names the folder for those that are damaged.
/// `saved` gives the source the word "load".
std::shared_ptr<const Source> make_stored(std::shared_ptr<const StoredRows> rows,
                                          const std::string& word);

/// The rows of a folder that `save` or a cache completed. Throws ConfigError if `folder` is no such
/// folder, is incomplete, or lacks rows.
std::shared_ptr<const StoredRows> open_saved(Io& io, const std::string& folder);

}  // namespace penstock
