#pragma once
// The options of a loader.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <penstock/allocator.h>
#include <penstock/clock.h>
#include <penstock/io.h>
#include <penstock/shares.h>
#include <penstock/tail.h>

namespace penstock {

/// What to do with a sample that fails.
enum class OnError : std::uint8_t {
  raise,  // `next` throws a SampleError that names the sample
  skip,   // the sample is left out (a padded batch keeps its row, marked as padding) and added to
          // the ledger; transient I/O errors still throw, after retries
};

/// What to do with a share that has no sample in some step.
enum class Empty : std::uint8_t {
  refuse,   // the constructor throws ConfigError, for loops that cannot skip a step; if all rows of
            // a share fail and are skipped, one row stays, with weight 0
  deliver,  // deliver a batch of 0 rows
};

struct LoaderOptions {
  /// Which share of each step to load. Default: one share per process of the launcher (torchrun,
  /// TF_CONFIG, srun, Open MPI or a Kubernetes Job), and this process's rank among them.
  std::optional<Shares> shares = {};
  /// Where `shares` came from, if the program took it from a launcher or a process group; shown in
  /// the plan.
  std::string shares_from = {};
  std::optional<Tail> tail = {};    // for batch() nodes that do not set one
  std::optional<Empty> empty = {};  // default: refuse if a launcher set the shares, else deliver
  std::optional<unsigned> threads = {};  // at most this many of the pool's; 0: the calling thread
  std::optional<std::uint64_t> lookahead_bytes = {};  // limit for batches prepared in advance
  OnError on_error = OnError::raise;
  std::string ledger_file = {};                  // file for skipped samples; none if empty
  std::optional<std::uint64_t> skip_limit = {};  // per epoch; default: 10, or 1 in 1,000 if more
  /// A wait this long is reported with the op and the sample that cause it. With `stall_is_error`,
  /// `next` throws ResourceError instead.
  std::chrono::milliseconds stall_after = std::chrono::seconds(30);
  bool stall_is_error = false;
  /// Called about every 50 ms by a thread that waits in `next`. An exception from it ends the wait
  /// and is rethrown by `next`; the step is not lost: call `next` again.
  std::function<void()> while_waiting = {};
  /// A folder in which every run leaves its trace, epoch-N.json, while it goes on: also when the
  /// program is killed. `penstock report` opens it. Empty: none.
  std::string report_dir = {};
  std::shared_ptr<Allocator> allocator = {};  // for slabs; the heap by default
  /// For tests: by which waits and stalls are measured, and what reads the files of samples.
  /// A clock must outlive the loader and its iterators, an Io also every read that hangs.
  Clock* clock = nullptr;
  Io* io = nullptr;
};

}  // namespace penstock
