#pragma once
// The features.json of a dataset that TensorFlow Datasets wrote.

#include <string>
#include <string_view>
#include <vector>

#include "penstock/tfrecord.h"

namespace penstock {

struct TfdsFeatures {
  std::vector<ExampleFeature> features;
  /// Those that cannot be read, with the reason: "video (several encoded images in one record)".
  std::vector<std::string> left_out;
};

/// The features that its records have: images, audio files and texts as bytes and strings, class
/// labels as i64, tensors with their dtype and shape, sequences of numbers with an unknown size.
/// Names of nested features are joined with '/'. `file` is for errors. Throws ConfigError if it is
/// not such a file, or nothing can be read.
TfdsFeatures parse_tfds_features(std::string_view json, const std::string& file);

}  // namespace penstock
