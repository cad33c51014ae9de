#pragma once
// How much of the steps of buckets is padding.

#include <optional>
#include <string>

#include "graph/node.h"
#include "plan/program.h"

namespace penstock {

/// A sentence about the padding of the first pass, for plans. `buckets` is the node whose inputs
/// are the batches of the buckets. Nothing if they are not padded, or by a function of the length.
std::optional<std::string> padding_sentence(const Node& buckets, const CompileOptions& options);

}  // namespace penstock
