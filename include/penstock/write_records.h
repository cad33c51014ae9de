#pragma once
// Writing a dataset to files that other programs read.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <penstock/dataset.h>
#include <penstock/options.h>

namespace penstock {

struct WriteRecordsOptions {
  /// "tfrecord": tf.train.Example, integers as int64 lists, floats as float lists, the rest as
  /// bytes. "tar": as WebDataset, one member per field. "arrow": Arrow's IPC format (Feather),
  /// a column for each field: its dtype (bf16 becomes float), lists of one size for its shape,
  /// lists of any size where a size is unknown, structs for nested fields. If the dataset does not
  /// know its fields, they are those of 64 samples; one that does not fit them is a SampleError.
  std::string format = "tfrecord";
  /// The number of files, of equal numbers of samples; 0: by size.
  std::uint64_t shards = 0;
  /// How large files should become; estimated from 64 samples, so that all files have the same
  /// number of samples.
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;
  /// Samples that fail are raised, or skipped and listed. Threads and the ledger are those of the
  /// loaders that compute the samples; they have one share.
  LoaderOptions loader = {};
  /// Called after each group of samples, with the samples done and their number, if it is known. An
  /// exception ends the writing; the complete files stay.
  std::function<void(std::uint64_t done, std::optional<std::uint64_t> total)> progress = {};
};

struct WrittenRecords {
  std::vector<std::string> files;  // their paths, in order
  std::uint64_t samples = 0;       // in all of them
  std::uint64_t bytes = 0;
  std::uint64_t skipped = 0;  // samples that failed, in this call
  std::uint64_t found = 0;    // files that an earlier call had written
};

/// Writes the samples of the first pass to files "data-00000.tfrecord", ... in `folder`, in the
/// order of the dataset, and their indexes (an Arrow file contains its own). A file appears when it
/// is complete, and shards.json, which lists them with their checksums, after each of them. A call
/// that was interrupted is continued by the next one with the same dataset and options: files that
/// are there are kept. Throws ConfigError for batches, endless data, fields that the format cannot
/// hold, and a folder with the files of something else; IoError if a file cannot be written.
WrittenRecords write_records(const Dataset& dataset, const std::string& folder,
                             const WriteRecordsOptions& options = {});

}  // namespace penstock
