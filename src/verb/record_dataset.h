#pragma once
// A dataset of files of records, of any format.

#include <string>
#include <vector>

#include "base/json.h"
#include "penstock/dataset.h"
#include "penstock/record_files.h"
#include "record/record_kind.h"
#include "verb/catalogue.h"

namespace penstock {

/// What users call a function of files of records with.
struct RecordArguments {
  std::vector<std::string> paths;
  RecordFileOptions options = {};
  /// What else the function was called with, for other processes; `paths` and `options` are added.
  Json others = Json::object();
};

/// Indexed, or a stream if a file is compressed. Finds the files and their records, and blocks
/// meanwhile.
Dataset record_dataset(const RecordKind& kind, const RecordArguments& arguments);

/// The paths and options of a node of a plan.
RecordArguments parse_record_arguments(const Parsed& parsed);

}  // namespace penstock
