#pragma once
// From samples to tf.train.Example.

#include <string>

#include "penstock/sample.h"

namespace penstock {

/// The bytes of an Example with a feature for each tensor: its path, or "value" for a sample that
/// is one tensor. Integers and bool become lists of int64, floats lists of float, bytes and strings
/// lists of one value; shapes are not stored. Throws ConfigError for f64, whose values would
/// change, and SampleError for a u64 that no int64 holds.
std::string encode_example(const Sample& sample);

}  // namespace penstock
