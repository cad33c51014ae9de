#pragma once
// What TFRecord files are to the readers of files of records.

#include <string>
#include <vector>

#include "penstock/tfrecord.h"
#include "record/record_kind.h"

namespace penstock {

/// Examples with these features; `notes` says where they are from.
RecordKind tfrecord_kind(std::vector<ExampleFeature> features, std::string notes = {});
/// Examples with the features of the first records.
RecordKind tfrecord_kind_inferred();
/// The payloads of the records.
RecordKind tfrecord_kind_raw();

}  // namespace penstock
