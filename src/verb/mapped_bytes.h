#pragma once

#include <string>

#include "penstock/tensor.h"

namespace penstock {

/// The bytes of a file, mapped, for a library that reads them in place. The file must not be
/// changed while the tensor exists. Throws IoError if it cannot be mapped.
Tensor mapped_bytes(const std::string& path);

}  // namespace penstock
