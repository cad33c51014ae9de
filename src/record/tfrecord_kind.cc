// tested in src/feed/tfrecord_test.cc
#include "record/tfrecord_kind.h"

#include <utility>

#include "record/example.h"
#include "record/example_infer.h"
#include "record/tfrecord.h"

namespace penstock {
namespace {

RecordKind kind_of(std::shared_ptr<const RecordDecoder> decoder) {
  RecordKind kind;
  kind.word = "from_tfrecord";
  kind.scanning = "tfrecord";
  kind.scanner = make_tfrecord_scanner;
  kind.decoder = [decoder = std::move(decoder)](const FirstRecords&) { return decoder; };
  return kind;
}

}  // namespace

RecordKind tfrecord_kind(std::vector<ExampleFeature> features, std::string notes) {
  return kind_of(make_example_decoder(std::move(features), std::move(notes)));
}

RecordKind tfrecord_kind_inferred() {
  RecordKind kind = kind_of(nullptr);
  kind.infer_records = 64;
  kind.decoder = [](const FirstRecords& first) {
    InferredFeatures inferred = infer_features(first);
    return make_example_decoder(std::move(inferred.features), std::move(inferred.notes));
  };
  return kind;
}

RecordKind tfrecord_kind_raw() {
  return kind_of(make_payload_decoder());
}

}  // namespace penstock
