#pragma once
// Decoders of the records of TFRecord files.

#include <memory>
#include <string>
#include <vector>

#include "penstock/tfrecord.h"
#include "record/record_decoder.h"

namespace penstock {

/// The field that it becomes.
FieldSpec field_of(const ExampleFeature& feature);

/// Decodes an Example or a SequenceExample to a dict of `features`; others are ignored. Checks both
/// checksums of the record. Throws ConfigError if a feature cannot be read as declared.
std::shared_ptr<const RecordDecoder> make_example_decoder(std::vector<ExampleFeature> features,
                                                          std::string notes = {});

/// The payload of the record, as bytes.
std::shared_ptr<const RecordDecoder> make_payload_decoder();

}  // namespace penstock
