// A chunk is built from the input and then damaged, or the input is the chunk, a nested value, or
// an index. A chunk has records that follow each other within it, the same for pieces of any size;
// each is a sample or a failure that says why. An index is read, or refused with the reason.
#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "penstock/error.h"
#include "record/litdata.h"
#include "record/litdata_for_tests.h"
#include "record/litdata_value.h"
#include "sample/rows.h"

namespace {

using penstock::for_tests::litdata_array;
using penstock::for_tests::litdata_dict;
using penstock::for_tests::litdata_leaf;
using penstock::for_tests::litdata_tensor;
using penstock::for_tests::litdata_tuple;

const std::vector<std::string> kSerializers = {"numpy",  "bytes", "int", "str", "no_header_numpy:1",
                                               "tensor", "bool",  "pil", "json"};

void expect(bool holds) {
  if (!holds) std::abort();
}

penstock::LitDataIndex index_of(bool tokens, bool compressed) {
  const penstock::Json leaf = litdata_leaf();
  const penstock::Json spec =
      litdata_dict({{"a", leaf},
                    {"d", litdata_tuple({leaf, leaf})},
                    {"c", litdata_dict({{"x", leaf}, {"y", litdata_tuple({leaf, leaf, leaf})}})},
                    {"b", leaf},
                    {"e", leaf}});
  penstock::Json chunk = penstock::for_tests::litdata_entry("a.bin", 100, 2);
  if (tokens) chunk["dim"] = 10;
  penstock::Json index = penstock::for_tests::litdata_index(
      tokens ? leaf : spec, tokens ? std::vector<std::string>{"no_header_tensor:14"} : kSerializers,
      {chunk});
  if (compressed) {
    index["config"]["compression"] = "zstd";
    index["config"]["compression_level"] = "sample";
  }
  return penstock::parse_litdata_index(index.dump(), "index.json");
}

/// Items with arrays of the sizes that the input says, and some changed bytes.
std::string chunk_of(std::string_view input, bool compressed) {
  using penstock::for_tests::little_bytes;
  const auto byte = [&input] {
    const unsigned value = input.empty() ? 0U : static_cast<unsigned char>(input.front());
    input.remove_prefix(input.empty() ? 0 : 1);
    return value;
  };
  std::vector<std::string> items;
  for (unsigned i = 0, count = byte() % 5; i < count; ++i) {
    const unsigned rows = byte() % 4;
    const std::string values(std::size_t{rows} * 2, '\1');
    const std::string nested = "\6" + little_bytes(rows, 4) + little_bytes(1, 4) +
                               little_bytes(1, 4) + "k" + std::string(rows, '\x10');
    const std::string picture =
        little_bytes(2, 4) + little_bytes(rows, 4) + little_bytes(1, 4) + "L" + values;
    const std::string tensor =
        i % 2 == 0 ? litdata_tensor(13, {rows}, values) : litdata_array(13, {rows, 1}, values);
    const std::string item = penstock::for_tests::litdata_item(
        {litdata_array(5, {rows, 1}, values), "bytes", "12345678", "text", values, tensor,
         std::string(1, static_cast<char>(rows % 2)), picture, nested});
    items.push_back(compressed ? penstock::for_tests::stored_zstd(item) : item);
  }
  std::string chunk = penstock::for_tests::litdata_chunk(items);
  while (!input.empty()) {
    const std::size_t at = byte() << 8U | byte();
    const auto value = static_cast<char>(byte());
    if (at % 2 == 0)
      chunk[chunk.size() - 1 - at / 2 % std::min<std::size_t>(chunk.size(), 600)] = value;
    else
      chunk[at / 2 % std::min<std::size_t>(chunk.size(), 30)] = value;
  }
  return chunk;
}

struct Scan {
  std::vector<std::uint64_t> starts = {};
  penstock::ScanEnd end = {};
};

Scan scan(const penstock::RecordKind& kind, std::string_view chunk, std::size_t piece_bytes) {
  const auto scanner = kind.scanner();
  Scan found;
  for (std::uint64_t at = 0; at < chunk.size();) {
    const std::string_view piece = chunk.substr(at, piece_bytes);
    at += piece.size();
    const std::uint64_t skipped = scanner->scan(at - piece.size(), piece, found.starts);
    at += std::min<std::uint64_t>(skipped, chunk.size() - at);
  }
  found.end = scanner->finish(chunk.size(), found.starts);
  return found;
}

void check_chunk(const penstock::RecordKind& kind, std::string_view chunk,
                 std::size_t piece_bytes) {
  const Scan found = scan(kind, chunk, SIZE_MAX);
  const Scan in_pieces = scan(kind, chunk, piece_bytes);
  expect(found.starts == in_pieces.starts && found.end.end == in_pieces.end.end &&
         found.end.damage == in_pieces.end.damage && found.end.end <= chunk.size());
  std::vector<std::uint64_t> starts = found.starts;
  starts.push_back(found.end.end);
  penstock::FirstRecords first;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    expect(starts[i] < starts[i + 1]);
    first.records.emplace_back(chunk.substr(starts[i], starts[i + 1] - starts[i]));
  }
  std::shared_ptr<const penstock::RecordDecoder> decoder;
  try {
    decoder = kind.decoder(first);
  } catch (const penstock::ConfigError&) {
    return;
  }
  penstock::Scratch scratch;
  std::size_t sum = 0;
  for (const std::string& record : first.records) {
    const auto owner = std::make_shared<const std::string>(record);
    const penstock::ScratchBlock block(decoder->spec(), 1, scratch);
    auto done = decoder->decode({*owner, owner}, block.view(), 0, scratch);
    if (!done) {
      expect(!done.failure().message.empty());
      continue;
    }
    const penstock::Sample row = penstock::read_row(block.view(), 0);
    for (const penstock::Tensor& leaf : row.leaves())
      for (const std::byte byte : leaf.raw()) sum += std::to_integer<unsigned>(byte);
  }
  volatile std::size_t sink = sum;  // every byte is readable
  (void)sink;
}

void check_index(std::string_view text) {
  try {
    (void)penstock::litdata_kind(penstock::parse_litdata_index(text, "index.json"), {});
  } catch (const penstock::ConfigError&) {
  }
}

void check_nested(std::string_view value) {
  const auto text = penstock::litdata_json_text(value);
  expect(text.ok() ? penstock::is_utf8(*text) : !text.failure().message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const penstock::RecordKind kind = litdata_kind(index_of(false, false), {});
  static const penstock::RecordKind packed = litdata_kind(index_of(false, true), {});
  static const penstock::RecordKind documents = litdata_kind(index_of(true, false), {});
  static const penstock::RecordKind windows = [] {
    penstock::LitDataOptions options;
    options.length = 3;
    return litdata_kind(index_of(true, false), options);
  }();
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t piece_bytes = 1 + data[1];
  switch (data[0] % 8) {
    case 0:
      check_index(input);
      break;
    case 1:
      check_chunk(kind, input, piece_bytes);
      break;
    case 2:
      check_nested(input);
      break;
    case 3:
      check_chunk(documents, input, piece_bytes);
      check_chunk(windows, input, piece_bytes);
      break;
    case 4:
      check_chunk(packed, chunk_of(input, true), piece_bytes);
      break;
    default:
      check_chunk(kind, chunk_of(input, false), piece_bytes);
  }
  return 0;
}
