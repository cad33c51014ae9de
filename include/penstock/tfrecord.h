#pragma once
// TFRecord files of tf.train.Example and SequenceExample.

#include <optional>
#include <string>
#include <vector>

#include <penstock/dataset.h>
#include <penstock/record_files.h>
#include <penstock/tensor.h>

namespace penstock {

/// A feature to read: it becomes the field `name`, which may contain a '/'. Numbers have a known
/// shape or one unknown size; bytes and strings are scalars.
///
/// f16, bf16, f32 and f64 are read from lists of floats, integers and bool from lists of int64:
/// a value that does not fit fails. Bytes and strings are lists of one value.
///
/// A feature of a known shape has exactly that many values, or `missing` where it is absent or
/// empty. With an unknown size it has any number of values that fits the others; absent is empty.
struct ExampleFeature {
  std::string name = {};
  Dtype dtype = Dtype::f32;
  Shape shape = {};
  /// A tensor of this dtype and shape, or a scalar for all values. Without it such a sample fails.
  std::optional<Tensor> missing = {};
  /// From the feature lists of a SequenceExample: the field is [steps, ...shape]. Each step has
  /// exactly the values of `shape`, which is known; an absent list has no steps.
  bool sequence = false;
  /// Numbers that were written as bytes, little-endian, as for tf.io.decode_raw.
  bool raw = false;
};

struct TfrecordOptions {
  RecordFileOptions files = {};
  /// What to read; other features are ignored. Empty: what features.json says in a folder of
  /// TensorFlow Datasets, otherwise what the first 64 records have; `Plan::explain` shows it.
  std::vector<ExampleFeature> features = {};
  /// The samples are the payloads of the records, as bytes.
  bool raw = false;
  /// Of a folder of TensorFlow Datasets: "train". Needed if it has several.
  std::string split = {};
};

/// A dict of the features of each Example or SequenceExample. `paths` are files as for all records,
/// or folders of TensorFlow Datasets, which have a features.json beside their files. Both checksums
/// of a record are checked when it is read; a damaged one fails. Throws ConfigError if a feature
/// cannot be read as declared, or none can be inferred.
Dataset from_tfrecord(const std::vector<std::string>& paths, const TfrecordOptions& options = {});

}  // namespace penstock
