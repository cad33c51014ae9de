// Batches of another size: the rows of batches, batched again.
#include <fmt/format.h>

#include "penstock/dataset.h"

namespace penstock {

Dataset Dataset::rebatch(std::int64_t size, const BatchOptions& options) const {
  if (size < 1)
    throw ConfigError(fmt::format("rebatch: size must be positive, got {}", size), {},
                      "pass the number of samples of a new batch");
  return unbatch().batch(size, options);
}

}  // namespace penstock
