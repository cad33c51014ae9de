#pragma once
// The files of one checkpoint, and the folder of all checkpoints.

#include <penstock/train/checkpoint.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::train {

/// Name and content.
using CheckpointFiles = std::vector<std::pair<std::string, std::string>>;

/// Written last: names, sizes and checksums of all others.
inline constexpr const char* kFileList = "files.json";
inline constexpr const char* kStateFile = "state.json";

CheckpointFiles encode_files(const Checkpoint& checkpoint);
/// Reads all files of the checkpoint at `path`. Throws StateError naming a file that has changed,
/// DeniedError and IoError if one cannot be read.
CheckpointFiles checked_files(const std::string& path);
/// The run that wrote the checkpoint at `path`, or nullopt if it is damaged or cannot be read.
/// Checks sizes, and reads only the state.
std::optional<std::string> run_of(const std::string& path);

/// Call it before the first save of a run that has done `iteration` updates: throws if the folder
/// has newer checkpoints, since a later resume would load one of those. If the run was resumed past
/// damaged checkpoints, it renames those. Removes leftovers of killed saves.
void claim_folder(const std::string& folder, std::uint64_t iteration, bool resumed);
/// Where the checkpoint of an iteration is saved.
std::string step_path(const std::string& folder, std::uint64_t iteration);

}  // namespace penstock::train
