// tested in src/verb/cache_test.cc
#include "verb/needs_rows.h"

#include <utility>

#include "graph/node.h"
#include "store/disk_rows.h"

namespace penstock {

RowsData rows_data(const Node& node) {
  return {digests_of(node, std::nullopt), node.spec};
}

std::shared_ptr<const StoredRows> open_stored(Io& io, const RowsTarget& target,
                                              const RowsData& data) {
  const auto header = find_header(io, target.folder, target.title, true);
  if (!header) return nullptr;
  refuse_other_data(*header, data, target.title);
  if (!header->complete || !header->rows) return nullptr;
  auto disk = DiskRows::shared({.title = target.title,
                                .folder = target.folder,
                                .header = *header,
                                .write = false,
                                .io = &io});
  if (disk->rows() < *header->rows) return nullptr;
  return std::make_shared<const StoredRows>(
      StoredRows{std::move(disk), *header->rows, header->data.spec, header->data.digests,
                 target.folder, "delete the folder: the stream is then read again"});
}

}  // namespace penstock
