#pragma once
// One folder for each save: weights and optimiser as safetensors files, everything else as JSON,
// and a list of checksums that is written last. A save that was cut off has no list, or one that
// does not fit, and is never used.

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
  std::string run;      // which training run it belongs to, over all its restarts
  std::uint64_t iteration = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;   // of the epoch
  bool epoch_done = false;  // all its steps are done, what comes after them is not
  std::string optimizer_name;
  std::string model_text;               // names and shapes
  std::string sums;                     // of the epoch so far, as JSON
  std::string history;                  // as JSON
  std::optional<double> learning_rate;  // where a callback set one
  std::uint32_t replicas = 1;
  int threads = 1;  // of torch, in each replica
};

/// Writes `folder`/step-<iteration>, and then removes older ones of the same run so that `keep`
/// whole ones are left. Never removes a checkpoint of another run, or a newer one. Returns the
/// path. Throws IoError when that fails; what was there before is still there.
std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint,
                            std::uint64_t keep = 3);
/// The same under a name of its own.
std::string save_checkpoint_as(const std::string& folder, const std::string& name,
                               const Checkpoint& checkpoint);
/// The newest whole checkpoint of `folder`, or nothing where there is none at all. Reports those
/// that are torn. Throws StateError where all are torn, and where one may not be read; IoError for
/// an error that may pass. `skip_unreadable` takes an older one instead.
std::optional<std::string> newest_checkpoint(const std::string& folder,
                                             bool skip_unreadable = false);
/// Throws StateError naming the file that is missing, cut or changed; IoError where one cannot be
/// read just now.
Checkpoint load_checkpoint(const std::string& path);

/// As one text, to be sent to other processes; and back.
std::string pack_checkpoint(const Checkpoint& checkpoint);
Checkpoint unpack_checkpoint(const std::string& text);

/// Tensors by name in the safetensors format.
std::string encode_tensors(const NamedTensors& tensors);
/// Throws StateError for bytes that are no such file. `what` is named in errors.
NamedTensors decode_tensors(const std::string& what, std::string_view bytes);

}  // namespace penstock::train
