#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "graph/node.h"
#include "penstock/padding.h"
#include "penstock/spec.h"

namespace penstock {

/// Returns a warning if the elements to batch look like batches already: several fields with the
/// same first dimension and different ranks.
std::optional<std::string> batch_of_batches(const ElementSpec& element);

/// How a batch node pads its rows; null if it does not.
const Padding* padding_of(const Node& leaf);
/// Throws ConfigError if fields that the padding names do not exist, or if its values are not of
/// their dtypes.
void check_padding(const char* word, const Padding& padding, const ElementSpec& spec);
Json padding_written(const Padding& padding);
Padding padding_parsed(const Json& padding);

}  // namespace penstock
