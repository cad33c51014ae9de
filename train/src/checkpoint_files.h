#pragma once
// The files of one checkpoint, and what stands in the folder of all of them.

#include <penstock/train/checkpoint.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::train {

/// Name and content.
using CheckpointFiles = std::vector<std::pair<std::string, std::string>>;

/// What is written last: names, sizes and checksums of all others.
inline constexpr const char* kFileList = "files.json";
inline constexpr const char* kStateFile = "state.json";

CheckpointFiles encode_files(const Checkpoint& checkpoint);
/// All files of the checkpoint at `path`, as they were written. Throws StateError naming the file
/// that is not, DeniedError and IoError where one cannot be read.
CheckpointFiles checked_files(const std::string& path);
/// The run that wrote the checkpoint at `path`, or nothing where that is torn or cannot be read.
/// Looks at sizes, and into the state alone.
std::optional<std::string> run_of(const std::string& path);

/// Before the first save of a run that has made `iteration` updates: refuses a folder that holds
/// newer checkpoints, since a later resume would take one of those. A run that was resumed past
/// torn ones sets these aside under another name. Removes what killed saves have left.
void claim_folder(const std::string& folder, std::uint64_t iteration, bool resumed);
/// Where the checkpoint of an iteration is saved.
std::string step_path(const std::string& folder, std::uint64_t iteration);

}  // namespace penstock::train
