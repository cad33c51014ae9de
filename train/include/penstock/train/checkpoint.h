#pragma once
// One folder per save: weights and optimizer as safetensors files, everything else as JSON, and a
// list of checksums that is written last. An interrupted save has no list, or one that does not
// match, and is never used.

#include <penstock/train/callback.h>
#include <penstock/train/optimizer.h>

#include <optional>
#include <string>

namespace penstock::train {

struct Checkpoint {
  NamedTensors model;
  NamedTensors optimizer;
  NamedTensors random;  // torch's generator
  std::string data;     // State of the feed, as JSON
  std::string run;      // the training run it belongs to, across restarts
  std::uint64_t iteration = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;   // of the epoch
  bool epoch_done = false;  // all its steps are done, but not what follows them
  std::string optimizer_name;
  std::string model_text;               // names and shapes
  std::string sums;                     // of the epoch so far, as JSON
  std::string history;                  // as JSON
  std::optional<double> learning_rate;  // if a callback set one
  std::uint32_t replicas = 1;
  int threads = 1;  // of torch, in each replica
};

/// Writes `folder`/step-<iteration>, and then removes older checkpoints of the same run so that
/// `keep` intact ones remain. Never removes a checkpoint of another run, or a newer one. Returns
/// the path. Throws IoError if it fails; existing checkpoints are then unchanged.
std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint,
                            std::uint64_t keep = 3);
/// The same under the given name.
std::string save_checkpoint_as(const std::string& folder, const std::string& name,
                               const Checkpoint& checkpoint);
/// The newest intact checkpoint of `folder`, or nullopt if there is none at all. Reports damaged
/// ones. Throws StateError if all are damaged or one cannot be read for lack of permission, IoError
/// for a transient error. With `skip_unreadable` it loads an older one instead.
std::optional<std::string> newest_checkpoint(const std::string& folder,
                                             bool skip_unreadable = false);
/// Throws StateError naming the file that is missing, truncated or changed, IoError for a transient
/// error.
Checkpoint load_checkpoint(const std::string& path);

/// Converts to text, to send to other processes, and back.
std::string pack_checkpoint(const Checkpoint& checkpoint);
Checkpoint unpack_checkpoint(const std::string& text);

/// Tensors by name in the safetensors format.
std::string encode_tensors(const NamedTensors& tensors);
/// Throws StateError if the bytes are not such a file. Errors name `what`.
NamedTensors decode_tensors(const std::string& what, std::string_view bytes);

}  // namespace penstock::train
