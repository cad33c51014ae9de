#pragma once

#include <optional>

#include "penstock/verb_options.h"

namespace penstock {

class Node;

/// The options of a shuffle of the whole dataset; nothing for any other node.
std::optional<ShuffleOptions> whole_shuffle(const Node& node);

}  // namespace penstock
