#pragma once

#include <memory>
#include <vector>

#include "plan/stage.h"

namespace penstock {

/// Tuples of the parts; with `numbered` the position comes first.
StagePtr zip_stage(std::vector<StagePtr> parts, bool numbered, const ElementSpec& spec);

}  // namespace penstock
