#pragma once
// A file as memory.

#include <string>

#include "penstock/tensor.h"

namespace penstock {

/// The values of a whole file, mapped. The file must not be changed while the tensor exists. Throws
/// IoError if it cannot be mapped, ConfigError if its size is not a multiple of the dtype's.
Tensor map_file(const std::string& path, Dtype dtype);

}  // namespace penstock
