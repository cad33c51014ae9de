#pragma once
// The cache of a stream: its rows are stored once, when it is resolved, and numbered from then on.

#include <cstdint>
#include <memory>
#include <string>

#include "penstock/dataset.h"
#include "source/stored_rows.h"
#include "store/rows_header.h"
#include "verb/lengths.h"

namespace penstock {

/// Where the rows go.
struct RowsTarget {
  std::string title;        // for errors
  std::string folder = {};  // empty: memory only
  std::uint64_t bytes_max = UINT64_MAX;
};
using RowsCell = SharedOnce<StoredRows>;

/// A verb that needs all rows of its input, a stream.
class NeedsRows {
 public:
  virtual ~NeedsRows() = default;
  [[nodiscard]] virtual RowsTarget rows_target() const = 0;
  [[nodiscard]] virtual const std::shared_ptr<RowsCell>& rows_cell() const = 0;
  /// The same verb on `input`, with its rows.
  [[nodiscard]] virtual Dataset with_rows(const Dataset& input,
                                          std::shared_ptr<const StoredRows> rows) const = 0;
};

/// Identifies the samples of `node`: their order, values and spec.
RowsData rows_data(const Node& node);
/// The rows of `input` if the folder has all of them; null if it is incomplete or empty. Creates
/// the folder. Throws ConfigError if it holds other data.
std::shared_ptr<const StoredRows> open_stored(Io& io, const RowsTarget& target,
                                              const RowsData& data);

}  // namespace penstock
