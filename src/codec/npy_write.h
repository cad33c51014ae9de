#pragma once
// Arrays as files of NumPy.

#include <string>

#include "penstock/tensor.h"

namespace penstock {

/// An .npy of version 1. bf16, which NumPy lacks, becomes f32. Not for bytes and strings.
std::string encode_npy(const Tensor& tensor);

}  // namespace penstock
