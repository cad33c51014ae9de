// Dataset::save.
// tested in src/feed/stored_test.cc
#include <fmt/format.h>

#include <span>
#include <utility>

#include "base/printable.h"
#include "graph/node.h"
#include "plan/program.h"
#include "run/search.h"
#include "run/store_rows.h"
#include "store/disk_rows.h"
#include "verb/needs_rows.h"

namespace penstock {
namespace {

void check_saved(const Dataset& dataset, const SaveOptions& options) {
  if (dataset.batched())
    throw ConfigError("save: these elements are batches", {},
                      "save the samples, then load(folder).batch(n); unbatch() makes batches "
                      "samples again");
  if (dataset.cardinality().is_endless())
    throw ConfigError("save: an endless dataset cannot be saved", {},
                      "save before repeat, or take(n)");
  if (wants_drawn_seed(*dataset.node()))
    throw ConfigError("save: with a random seed every run has another order", {}, "set a seed");
  constexpr std::uint32_t kFilesMax = 1024;
  if (options.files < 1 || options.files > kFilesMax)
    throw ConfigError(fmt::format("save: files is from 1 to {}, got {}", kFilesMax, options.files));
}

/// Prepares the folder, and returns the header of the rows to be written.
RowsHeader begin_saving(Io& io, const std::string& folder, const std::string& title,
                        const Dataset& dataset, const SaveOptions& options) {
  RowsHeader header;
  header.data = rows_data(*dataset.node());
  header.version = PENSTOCK_VERSION;
  const bool indexed = !dataset.streamed();
  if (indexed) header.rows = dataset.cardinality().count();
  // A stream must be read from its start, and its rows not mixed with those of another traversal.
  if (!indexed) header.build = random_number() | 1;
  const auto found = find_header(io, folder, title, options.overwrite);
  if (found && found->complete && !options.overwrite)
    throw ConfigError(fmt::format("{}: there is a saved dataset already", title), {},
                      "overwrite it, or use another folder");
  if (found && !options.overwrite) refuse_other_data(*found, header.data, title);
  const bool goes_on = indexed && found && !found->complete && found->build == 0 &&
                       found->data.number() == header.data.number();
  Result<void> done;
  if (!goes_on) done = remove_rows(io, folder);
  if (done) done = publish_header(io, folder, header);
  if (!done) throw IoError(fmt::format("{}: {}", title, done.failure().message));
  return header;
}

}  // namespace

void Dataset::save(const std::string& folder, const SaveOptions& options,
                   const std::function<void()>& while_waiting) const {
  check_saved(*this, options);
  const Dataset dataset = resolve(while_waiting);
  Io& io = Io::real();
  const std::string title = fmt::format("save(\"{}\")", printable(folder));
  if (folder.empty())
    throw ConfigError(title + ": the folder has no name", {}, "name one that can be written to");
  if (auto done = io.create_folder(folder); !done)
    throw IoError(fmt::format("{}: {}", title, done.failure().message), {},
                  "name a folder that can be written to");
  const auto lock = wait_for_folder(io, folder, title, while_waiting);
  const RowsHeader header = begin_saving(io, folder, title, dataset, options);
  const auto disk = std::make_shared<DiskRows>(DiskRowsSettings{
      .title = title, .folder = folder, .header = header, .quiet = true, .files = options.files});
  const auto refuse = [&](const std::string& why) {
    throw IoError(fmt::format("{}: {}; it has {}", title, why, disk->text()), {},
                  "call save() again when there is room: it goes on where it was");
  };
  std::uint64_t rows = 0;
  if (dataset.streamed()) {
    rows = read_stream(
        dataset, title,
        [&](std::span<const std::uint64_t> numbers, const BlockView& block) {
          disk->put(numbers, block);
          if (disk->full()) refuse(disk->stopped_because());
        },
        while_waiting);
  } else {
    rows = *header.rows;
    const auto visit = [disk](std::span<const std::uint64_t> numbers,
                              const BlockView& block) -> Result<void> {
      disk->put(numbers, block);
      if (disk->full()) return Failure{disk->stopped_because()};
      return {};
    };
    try {
      search(compile_samples(*dataset.node(), {}),
             {"save", rows, visit, [disk](std::uint64_t number) { return disk->has(number); }},
             while_waiting);
    } catch (const SampleError&) {
      if (disk->full()) refuse(disk->stopped_because());
      throw;
    }
  }
  if (disk->rows() < rows) refuse("a row is larger than 1 GiB");
  if (auto done = disk->finish(rows); !done) refuse(done.failure().message);
}

}  // namespace penstock
