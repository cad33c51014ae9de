// A tar is built from the input and then damaged, so that checksums and sizes mostly agree; or the
// input is the tar. Whatever it is: its records follow each other within it, the same for pieces of
// any size; a stream that keeps only what it must has their first bytes; each is a sample or a
// failure that says why. Without damage there are as many as were built.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "record/tar.h"
#include "record/tar_for_tests.h"
#include "record/tar_header.h"
#include "sample/rows.h"

namespace {

using penstock::for_tests::gnu_long_name;
using penstock::for_tests::pax_entry;
using penstock::for_tests::pax_line;
using penstock::for_tests::tar_entry;
using penstock::for_tests::TarEntry;

void expect(bool holds) {
  if (!holds) std::abort();
}

/// The input, byte by byte; zeros after its end.
struct Input {
  std::string_view rest;
  unsigned byte() {
    if (rest.empty()) return 0;
    const auto value = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    return value;
  }
  unsigned number() {
    const unsigned high = byte();
    return high << 8U | byte();
  }
};

struct Built {
  std::string file;
  std::size_t samples = 0;
  bool plain = true;  // its samples can be counted
};

std::string name_of(Input& input, Built& built) {
  static const std::array<std::string, 10> kKeys = {
      "a", "b", "d/a", "d.e/a", "../a", "/a", "__i", ".h", std::string(120, 'k'), ""};
  static const std::array<std::string, 8> kExtensions = {".jpg", ".cls", ".JPG",   ".seg.png",
                                                         "",     ".",    ".txt__", "/"};
  const unsigned choice = input.byte();
  const unsigned key = choice % 16 < kKeys.size() ? choice % 16 : 0;
  built.plain = built.plain && key < 4 && choice / 16 % 8 < 4;
  return kKeys[key] + kExtensions[choice / 16 % 8];
}

/// Adds a member with the headers before it.
void add_member(Input& input, Built& built, std::string& last_key) {
  const unsigned how = input.byte();
  TarEntry entry{.name = name_of(input, built), .content = {}};
  entry.content = std::string(input.number() % 1500, static_cast<char>('0' + how % 10));
  constexpr std::string_view kTypes = "000001234567SDVMxgLK";
  entry.type = kTypes[how % kTypes.size()];
  built.plain = built.plain && entry.type == '0';
  const std::string name = entry.name;
  switch (how / 32) {
    case 1:
      built.file += gnu_long_name(name);
      entry.name = "short";
      break;
    case 2:
      built.file += pax_entry(pax_line("mtime", "1.5") + pax_line("path", name));
      break;
    case 3:
      entry.magic = "ustar  ";
      break;
    case 4:
      entry.magic = "";
      break;
    case 5:
      entry.prefix = "p";
      built.plain = false;
      break;
    case 6: {
      built.plain = false;
      constexpr std::array kLines = {"size", "GNU.sparse.name", "GNU.sparse.major", "path"};
      built.file += pax_entry(pax_line(kLines[input.byte() % 4], std::to_string(input.number())),
                              input.byte() % 4 == 0 ? 'g' : 'x');
      break;
    }
    default:
      break;
  }
  built.file += tar_entry(entry);
  const std::string key = name.substr(0, name.find('.', name.rfind('/') + 1));
  if (key != last_key) ++built.samples;
  last_key = key;
}

Built build(Input& input) {
  Built built;
  std::string last_key = "none";
  for (unsigned i = 0, count = input.byte() % 12; i < count; ++i)
    add_member(input, built, last_key);
  built.file.resize(built.file.size() + input.byte() % 4 * 512);
  // Changed bytes, of headers mostly; the checksum is made to agree again, or not.
  while (!input.rest.empty() && !built.file.empty()) {
    built.plain = false;
    const unsigned what = input.byte();
    const std::size_t block = input.byte() % ((built.file.size() + 511) / 512) * 512;
    const std::size_t at = std::min(block + input.number() % 512, built.file.size() - 1);
    built.file[at] = static_cast<char>(input.byte());
    if (what % 4 != 0 && block + 512 <= built.file.size()) {
      std::string header = built.file.substr(block, 512);
      penstock::for_tests::set_tar_checksum(header);
      built.file.replace(block, 512, header);
    }
    if (what > 250) built.file.resize(at);
  }
  return built;
}

struct Scan {
  std::vector<std::uint64_t> starts = {};
  penstock::ScanEnd end = {};
};

Scan scan(std::string_view file, std::size_t piece_bytes) {
  const auto scanner = penstock::make_tar_scanner();
  Scan found;
  for (std::uint64_t at = 0; at < file.size();) {
    const std::uint64_t kept = std::min(scanner->undecided_from(), at);
    const std::string_view piece = file.substr(at, piece_bytes);
    const std::size_t before = found.starts.size();
    const std::uint64_t skipped = scanner->scan(at, piece, found.starts);
    at += piece.size();
    for (std::size_t i = before; i < found.starts.size(); ++i)
      expect(found.starts[i] >= kept && found.starts[i] < at);
    at = skipped > file.size() - at ? file.size() : at + skipped;
  }
  found.end = scanner->finish(file.size(), found.starts);
  return found;
}

void check(std::string_view file, const penstock::RecordDecoder& decoder, std::size_t piece_bytes,
           const Built* built) {
  const Scan found = scan(file, SIZE_MAX);
  const Scan in_pieces = scan(file, piece_bytes);
  expect(found.starts == in_pieces.starts && found.end.end == in_pieces.end.end);
  expect(found.end.damage == in_pieces.end.damage);
  expect(found.end.end <= file.size());
  std::vector<std::uint64_t> starts = found.starts;
  starts.push_back(found.end.end);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) expect(starts[i] < starts[i + 1]);
  if (!found.end.damage.empty()) expect(!found.starts.empty() && found.end.end == file.size());
  if (built != nullptr && built->plain)
    expect(found.end.damage.empty() && found.starts.size() == built->samples);
  penstock::Scratch scratch;
  std::size_t sum = 0;
  std::vector<std::string> records;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto owner =
        std::make_shared<const std::string>(file.substr(starts[i], starts[i + 1] - starts[i]));
    records.push_back(*owner);
    const penstock::ScratchBlock block(decoder.spec(), 1, scratch);
    auto done = decoder.decode({*owner, owner}, block.view(), 0, scratch);
    if (!done) {
      expect(!done.failure().message.empty());
      continue;
    }
    const penstock::Sample row = penstock::read_row(block.view(), 0);
    for (const penstock::Tensor& leaf : row.leaves())
      for (const std::byte byte : leaf.raw()) sum += std::to_integer<unsigned>(byte);
  }
  try {
    penstock::FirstRecords first;
    first.records = std::move(records);
    (void)penstock::make_tar_decoder({}, first);
  } catch (const penstock::ConfigError&) {
  }
  volatile std::size_t sink = sum;  // every byte is readable
  (void)sink;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::TarOptions options;
  options.fields = {{"image", "jpg;seg.png"}, {"label", "cls"}};
  options.key = true;
  static const auto decoder = penstock::make_tar_decoder(options, {});
  Input input{{reinterpret_cast<const char*>(data), size}};
  const unsigned mode = input.byte();
  const std::size_t piece_bytes = 1 + input.number() % 2000;
  if (mode % 8 == 0) {
    check(input.rest, *decoder, piece_bytes, nullptr);
    return 0;
  }
  const Built built = build(input);
  check(built.file, *decoder, piece_bytes, &built);
  return 0;
}
