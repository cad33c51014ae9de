#pragma once
// The features of records of which nothing is declared.

#include <string>
#include <vector>

#include "penstock/tfrecord.h"
#include "record/record_kind.h"

namespace penstock {

struct InferredFeatures {
  std::vector<ExampleFeature> features;
  /// "inferred from the first 64 records: {x: f32[3]}; left out: tags (2 texts in one record)".
  std::string notes;
};

/// Every feature of these records. Floats are f32, integers i64, texts bytes. With the same number
/// of values everywhere the shape is that number, or a scalar for one; otherwise it is unknown.
/// Several texts, or a text that is absent somewhere, cannot be read and are left out. Throws
/// ConfigError if there are no records, or none is an Example.
InferredFeatures infer_features(const FirstRecords& first);

}  // namespace penstock
