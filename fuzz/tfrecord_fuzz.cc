// TFRecord files, Examples and features.json: any bytes are read, or fail with a reason. Records
// follow each other without a gap, however a file is cut into pieces. Features that were inferred
// from a record can be read from it, and an Example that was written from them has the same values.
// The first byte says what the others are; Examples are framed here, with the right checksums.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/error.h"
#include "record/example.h"
#include "record/example_encode.h"
#include "record/example_infer.h"
#include "record/tfds_features.h"
#include "record/tfrecord.h"
#include "sample/rows.h"

namespace penstock {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

struct Records {
  std::vector<std::uint64_t> starts;
  ScanEnd end;
};

Records scan(std::string_view file, std::size_t piece_bytes) {
  const auto scanner = make_tfrecord_scanner();
  Records out;
  std::uint64_t at = 0;
  while (at < file.size()) {
    const std::string_view piece = file.substr(at, piece_bytes);
    at += piece.size();
    const std::uint64_t skip = scanner->scan(at - piece.size(), piece, out.starts);
    if (skip >= file.size() - at) break;
    at += skip;
  }
  out.end = scanner->finish(file.size(), out.starts);
  return out;
}

std::vector<ExampleFeature> every_feature() {
  std::vector<ExampleFeature> features{{"f", Dtype::f32, {kUnknown}},
                                       {"i", Dtype::i32, {kUnknown, 3}},
                                       {"t", Dtype::string},
                                       {"raw", Dtype::f32, {2}},
                                       {"u8", Dtype::u8},
                                       {"b", Dtype::boolean, {2}},
                                       {"h", Dtype::f16},
                                       {"s", Dtype::f64, {2}, {}, true},
                                       {"n", Dtype::i64, {}, {}, true}};
  features[2].missing = Tensor::bytes("none", Dtype::string);
  features[3].raw = true;
  features[3].missing = Tensor::scalar(0.0F);
  features[4].missing = Tensor::scalar(std::uint8_t{1});
  features[5].missing = Tensor::scalar(true);
  features[6].missing = Tensor::scalar(Half(1));
  return features;
}

/// The row of a framed record, whose bytes are all readable; nothing if it fails.
std::optional<Sample> decode(const RecordDecoder& decoder, std::string_view record) {
  Scratch scratch;
  const ScratchBlock block(decoder.spec(), 1, scratch);
  const auto owner = std::make_shared<const std::string>(record);
  const auto done = decoder.decode({*owner, owner}, block.view(), 0, scratch);
  if (!done) {
    require(!done.failure().message.empty());
    return std::nullopt;
  }
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : read_row(block.view(), 0).leaves()) {
    leaves.push_back(leaf.kept());
    std::size_t sum = 0;
    for (const std::byte byte : leaf.raw()) sum += std::to_integer<unsigned>(byte);
    volatile std::size_t sink = sum;
    (void)sink;
  }
  return Sample::assemble(decoder.spec().structure, std::move(leaves));
}

void check_inference(const std::string& record) {
  FirstRecords first;
  first.records = {record};
  InferredFeatures inferred;
  try {
    inferred = infer_features(first);
  } catch (const ConfigError&) {
    return;
  }
  const auto decoder = make_example_decoder(inferred.features);
  const auto sample = decode(*decoder, record);
  require(sample.has_value());
  for (const ExampleFeature& feature : inferred.features)
    if (feature.sequence) return;
  std::string again;
  append_tfrecord(again, encode_example(*sample));
  const auto same = decode(*decoder, again);
  require(same.has_value());
  for (std::size_t i = 0; i < sample->leaves().size(); ++i)
    require(sample->leaves()[i].text() == same->leaves()[i].text());
}

void check_record(const std::string& record) {
  static const auto decoder = make_example_decoder(every_feature());
  (void)decode(*decoder, record);
  (void)decode(*make_payload_decoder(), record);
  check_inference(record);
}

void check_file(std::string_view file) {
  const Records found = scan(file, 1 << 16);
  const Records bytewise = scan(file, 5);
  require(found.starts == bytewise.starts && found.end.end == bytewise.end.end &&
          found.end.damage == bytewise.end.damage);
  require(found.end.end == file.size());
  require(found.starts.empty() ? file.empty() : found.starts[0] == 0);
  for (std::size_t i = 0; i < found.starts.size(); ++i) {
    const bool last = i + 1 == found.starts.size();
    const std::uint64_t end = last ? found.end.end : found.starts[i + 1];
    require(found.starts[i] < end);
    const std::string record(file.substr(found.starts[i], end - found.starts[i]));
    if (last && !found.end.damage.empty()) {
      const auto payload = tfrecord_payload(record);
      require(!payload && payload.failure().message == found.end.damage);
    }
    check_record(record);
  }
}

void check_features(std::string_view json) {
  try {
    (void)make_example_decoder(parse_tfds_features(json, "features.json").features);
  } catch (const ConfigError&) {
  }
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 3 == 0) {
    penstock::check_file(bytes);
  } else if (data[0] % 3 == 1) {
    std::string record;
    penstock::append_tfrecord(record, bytes);
    penstock::check_record(record);
  } else {
    penstock::check_features(bytes);
  }
  return 0;
}
