#pragma once
// A format of records: how they are found and decoded.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "record/record_decoder.h"
#include "record/record_scanner.h"

namespace penstock {

/// The beginning of the first file, from which fields and types can be inferred.
struct FirstRecords {
  std::string file;                  // for errors
  std::string preface;               // what is before the first record
  std::vector<std::string> records;  // as many as the kind wants, fewer if the file has fewer
  bool whole_file = false;           // there are no others in this file
};

struct RecordKind {
  std::string word;  // "from_csv"
  /// Identifies the scanner and its options: an index that was written with another one is not
  /// used. "csv delimiter=, quote=\" header".
  std::string scanning;
  std::function<std::unique_ptr<RecordScanner>()> scanner;
  bool has_preface = false;       // the decoder accepts or refuses what is before the first record
  std::size_t infer_records = 0;  // how many records `decoder` wants to see
  /// Called once, when the dataset is defined. Throws ConfigError.
  std::function<std::shared_ptr<const RecordDecoder>(const FirstRecords& first)> decoder;
};

}  // namespace penstock
