#pragma once
// All rows of a dataset, written to a store: the caches of streams, and saved datasets (save.cc).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "penstock/dataset.h"
#include "penstock/io.h"
#include "source/stored_rows.h"
#include "verb/needs_rows.h"

namespace penstock {

/// The rows of `input`, a stream: from the folder of `target` if it has them; otherwise the stream
/// is read to its end, its maps in parallel. Another process that does so for the same folder is
/// waited for.
std::shared_ptr<const StoredRows> store_stream(const Dataset& input, const RowsTarget& target,
                                               const std::function<void()>& while_waiting);

/// Reads a stream to its end and calls `put` with its rows, in order; returns how many there were.
/// Throws what `put` throws, and SampleError if an element fails.
std::uint64_t read_stream(
    const Dataset& stream, const std::string& title,
    const std::function<void(std::span<const std::uint64_t> numbers, const BlockView& rows)>& put,
    const std::function<void()>& while_waiting);

/// Waits until no other process writes all rows of the folder, and keeps others from it.
std::unique_ptr<FileLock> wait_for_folder(Io& io, const std::string& folder,
                                          const std::string& title,
                                          const std::function<void()>& while_waiting);

}  // namespace penstock
