// A shard is built from the input and then damaged, or the input is the shard, or an index. A shard
// has records that follow each other within it, the same for pieces of any size; each is a sample
// or a failure that says why. An index is read, or refused with the reason.
#include <algorithm>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "record/mds.h"
#include "record/mds_for_tests.h"
#include "sample/rows.h"

namespace {

using penstock::for_tests::MdsTestColumn;

const std::vector<MdsTestColumn> kColumns = {{"a", "ndarray"},
                                             {"b", "bytes"},
                                             {"c", "int", 8},
                                             {"d", "str"},
                                             {"e", "ndarray:int16"},
                                             {"f", "ndarray:uint8:2", 2},
                                             {"g", "ndarray:float32:1", 4}};

void expect(bool holds) {
  if (!holds) std::abort();
}

std::string index_text() {
  return penstock::Json({{"version", 2},
                         {"shards", penstock::Json::array({penstock::for_tests::mds_entry(
                                        kColumns, "a.mds", 100, 2)})}})
      .dump();
}

/// Samples with arrays of the sizes that the input says, and some changed bytes.
std::string shard_of(std::string_view input) {
  const auto byte = [&input] {
    const unsigned value = input.empty() ? 0U : static_cast<unsigned char>(input.front());
    input.remove_prefix(input.empty() ? 0 : 1);
    return value;
  };
  std::vector<std::string> samples;
  for (unsigned i = 0, count = byte() % 5; i < count; ++i) {
    const int rows = static_cast<int>(1 + byte() % 3);
    const std::string values(static_cast<std::size_t>(rows) * 2, 'v');
    samples.push_back(penstock::for_tests::mds_sample(
        kColumns, {"\x10" + penstock::for_tests::mds_array({rows, 1}, values), "bytes", "12345678",
                   "text", penstock::for_tests::mds_array({rows}, values), "ab", "cdef"}));
  }
  std::string shard = penstock::for_tests::mds_shard(kColumns, samples);
  while (!input.empty()) {
    // From the end, where the samples are; the columns in between count for nothing.
    const std::size_t at = byte() << 8U | byte();
    const auto value = static_cast<char>(byte());
    if (at % 2 == 0)
      shard[shard.size() - 1 - at / 2 % std::min<std::size_t>(shard.size(), 300)] = value;
    else
      shard[at / 2 % std::min<std::size_t>(shard.size(), 30)] = value;
  }
  return shard;
}

struct Scan {
  std::vector<std::uint64_t> starts = {};
  penstock::ScanEnd end = {};
};

Scan scan(std::string_view shard, std::size_t piece_bytes) {
  const auto scanner = penstock::make_mds_scanner();
  Scan found;
  for (std::uint64_t at = 0; at < shard.size();) {
    const std::string_view piece = shard.substr(at, piece_bytes);
    at += piece.size();
    const std::uint64_t skipped = scanner->scan(at - piece.size(), piece, found.starts);
    at += std::min<std::uint64_t>(skipped, shard.size() - at);
  }
  found.end = scanner->finish(shard.size(), found.starts);
  return found;
}

void check_shard(const penstock::RecordKind& kind, std::string_view shard,
                 std::size_t piece_bytes) {
  const Scan found = scan(shard, SIZE_MAX);
  const Scan in_pieces = scan(shard, piece_bytes);
  expect(found.starts == in_pieces.starts && found.end.end == in_pieces.end.end &&
         found.end.damage == in_pieces.end.damage && found.end.end == shard.size());
  std::vector<std::uint64_t> starts = found.starts;
  starts.push_back(found.end.end);
  penstock::FirstRecords first;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    expect(starts[i] < starts[i + 1]);
    first.records.emplace_back(shard.substr(starts[i], starts[i + 1] - starts[i]));
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const penstock::RecordKind kind =
      penstock::mds_kind(penstock::parse_mds_index(index_text(), "index.json"), {});
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t piece_bytes = 1 + data[1];
  switch (data[0] % 4) {
    case 0:
      try {
        (void)penstock::mds_kind(penstock::parse_mds_index(input, "index.json"), {});
      } catch (const penstock::ConfigError&) {
      }
      break;
    case 1:
      check_shard(kind, input, piece_bytes);
      break;
    default:
      check_shard(kind, shard_of(input), piece_bytes);
  }
  return 0;
}
