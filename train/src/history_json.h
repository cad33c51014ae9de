#pragma once

#include <penstock/train/callback.h>

#include "base/json_fwd.h"

namespace penstock::train {

/// {"epoch": 0, "steps": 7, "samples": 103, "loss": ..., "accuracy": ..., "val_loss": ...,
/// "input_wait": ...}
Json epoch_json(const EpochLog& log);
std::string history_to_json(const History& history);
/// Throws StateError.
History history_from_json(const std::string& text);

}  // namespace penstock::train
