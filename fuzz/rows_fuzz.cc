// The files of a folder of rows: dataset.json, row files and their indexes. Damaged bytes are found
// by their checksums; here the checksums are corrected, so that what is behind them is reached. Any
// payload is a row of the spec, every byte of which can be read, or refused.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "base/json.h"
#include "penstock/io.h"
#include "sample/rows.h"
#include "store/row_file.h"
#include "store/row_format.h"
#include "store/rows_header.h"

namespace {

using penstock::Result;

constexpr penstock::RowFileStart kStart{7, 1};

/// A file in memory.
class OneFile final : public penstock::Io {
 public:
  explicit OneFile(std::string_view bytes) : bytes_(bytes) {}
  Result<penstock::Bytes> read(const std::string&, std::uint64_t offset,
                               std::uint64_t length) override {
    if (offset > bytes_.size() || length > bytes_.size() - offset) std::abort();
    penstock::Bytes bytes(length);
    if (length > 0) std::memcpy(bytes.data(), bytes_.data() + offset, length);
    return bytes;
  }
  Result<penstock::Bytes> read_whole(const std::string&, const penstock::WholeFile&) override {
    return penstock::Failure{};
  }
  Result<std::string> read_text(const std::string&, std::uint64_t) override {
    return penstock::Failure{};
  }
  Result<std::vector<penstock::FolderEntry>> list(const std::string&) override {
    return penstock::Failure{};
  }
  Result<penstock::FolderEntry> look(const std::string&) override { return penstock::Failure{}; }
  Result<std::string> real_path(const std::string&) override { return penstock::Failure{}; }
  Result<void> append(const std::string&, const std::string&) override { return {}; }
  Result<void> publish(const std::string&, std::string_view) override { return {}; }

 private:
  const std::string_view bytes_;
};

void decode(std::string_view payload, const penstock::ElementSpec& spec) {
  const auto memory = std::make_shared<std::byte[]>(payload.size() + 1);
  if (!payload.empty()) std::memcpy(memory.get(), payload.data(), payload.size());
  penstock::Scratch scratch;
  const penstock::ScratchBlock block(spec, 1, scratch);
  const std::string_view bytes(reinterpret_cast<const char*>(memory.get()), payload.size());
  if (!penstock::RowCodec(spec).decode(bytes, memory, block.view(), 0)) return;
  std::size_t sum = 0;
  const penstock::Sample row = penstock::read_row(block.view(), 0);
  for (const penstock::Tensor& leaf : row.leaves())
    for (const std::byte byte : leaf.raw()) sum += std::to_integer<unsigned>(byte);
  volatile std::size_t sink = sum;
  (void)sink;
}

void read_header(std::string_view text) {
  std::string signed_text(text);
  if (auto json = penstock::parse_json(text); json && json->is_object()) {
    json->erase("check");
    try {
      (*json)["check"] = penstock::crc32c(json->dump());
      signed_text = json->dump();
    } catch (const penstock::Json::exception&) {  // names that are not UTF-8
    }
  }
  auto header = penstock::parse_rows_header(signed_text);
  if (!header) return;
  auto again = penstock::parse_rows_header(header->text());
  if (!again || again->text() != header->text()) std::abort();
}

void scan(std::string_view bytes) {
  OneFile io(bytes);
  std::vector<penstock::StoredRow> rows;
  const auto end =
      penstock::scan_rows(io, penstock::FileHandle("file"), kStart.salt, 0, bytes.size(), rows);
  if (!end || *end > bytes.size() + 7) std::abort();
  for (const penstock::StoredRow& row : rows)
    if (row.offset + penstock::kRowHeaderBytes + row.payload_bytes > bytes.size()) std::abort();
}

void read_index(std::string_view bytes) {
  std::string text(bytes);
  const std::uint32_t crc = penstock::crc32c(text);
  text.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  const auto index = penstock::parse_row_file_index(text, kStart, 1 << 20);
  if (!index) return;
  for (const penstock::StoredRow& row : index->rows)
    if (row.offset + penstock::kRowHeaderBytes + row.payload_bytes > index->end) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  using penstock::Dtype;
  switch (data[0] % 5) {
    case 0:
      read_header(rest);
      break;
    case 1:
      scan(rest);
      break;
    case 2:
      read_index(rest);
      break;
    case 3:
      decode(rest, penstock::ElementSpec::unknown());
      break;
    default:
      decode(rest, penstock::ElementSpec::dict({{"a", Dtype::u8, {3}},
                                                {"b", Dtype::i32, {penstock::kUnknown, 2}},
                                                {"c", Dtype::string, {}}}));
  }
  return 0;
}
