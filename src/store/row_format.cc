#include "store/row_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "sample/rows.h"

namespace penstock {
namespace {

constexpr std::string_view kFileMagic = "PSROWS1\n";
constexpr std::uint32_t kFrameMagic = 0x31575350;  // "PSW1"

template <typename Number>
void add_number(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <typename Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number number{};
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

std::string_view bytes_of(const std::uint64_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The parts of one payload, with their length and checksum.
class PayloadWriter {
 public:
  explicit PayloadWriter(RowFrames& frames) : frames_(frames) {}
  void add(std::string_view part) {
    if (part.empty()) return;
    frames_.parts.push_back(part);
    bytes_ += part.size();
    crc_ = crc32c(part, crc_);
  }
  void add_own(std::string part) { add(frames_.own.emplace_back(std::move(part))); }
  void align() {
    static constexpr std::array<char, 8> kZeros{};
    add({kZeros.data(), padding_after(bytes_)});
  }
  void add_tensor(const Tensor& tensor, bool with_dtype) {
    align();
    std::string head;
    if (with_dtype) add_number(head, static_cast<std::uint64_t>(tensor.dtype()));
    add_number(head, static_cast<std::uint64_t>(tensor.shape().size()));
    add_number(head, static_cast<std::uint64_t>(tensor.raw().size()));
    for (const std::int64_t size : tensor.shape()) add_number(head, size);
    add_own(std::move(head));
    add(text_of(tensor.raw()));
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t crc() const { return crc_; }

 private:
  RowFrames& frames_;
  std::uint64_t bytes_ = 0;
  std::uint32_t crc_ = 0;
};

void add_structure(const Structure& node, std::string& text) {
  text += static_cast<char>(node.kind);
  if (node.kind == Structure::Kind::leaf) return;
  add_number(text, static_cast<std::uint32_t>(node.children.size()));
  for (const auto& [name, child] : node.children) {
    add_number(text, static_cast<std::uint32_t>(name.size()));
    text += name;
    add_structure(child, text);
  }
}

/// Reads a payload from its start. Every function returns false at the end of the bytes or if they
/// have another form.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

  bool take(std::size_t bytes, std::string_view& part) {
    if (bytes > bytes_.size() - at_) return false;
    part = bytes_.substr(at_, bytes);
    at_ += bytes;
    return true;
  }
  template <typename Number>
  bool take(Number& number) {
    std::string_view part;
    if (!take(sizeof number, part)) return false;
    number = number_at<Number>(part, 0);
    return true;
  }
  bool align() {
    std::string_view zeros;
    return take(padding_after(at_), zeros);
  }

  bool take_tensor(std::optional<Dtype> dtype, const std::shared_ptr<const void>& owner,
                   Tensor& tensor) {
    constexpr std::uint64_t kRankMax = 64;
    std::uint64_t rank = 0;
    std::uint64_t bytes = 0;
    if (!align()) return false;
    if (!dtype) {
      std::uint64_t number = 0;
      if (!take(number) || number > static_cast<std::uint64_t>(Dtype::string)) return false;
      dtype = static_cast<Dtype>(number);
    }
    if (!take(rank) || !take(bytes) || rank > kRankMax) return false;
    Shape shape(rank);
    std::uint64_t needed = dtype_size(*dtype);
    for (std::int64_t& size : shape)
      if (!take(size) || size < 0 ||
          __builtin_mul_overflow(needed, static_cast<std::uint64_t>(size), &needed))
        return false;
    std::string_view data;
    if (is_variable(*dtype) ? rank > 0 : needed != bytes) return false;
    if (!take(bytes, data)) return false;
    tensor = Tensor::view(*dtype, std::move(shape), std::as_bytes(std::span(data)), owner);
    return true;
  }

  bool take_structure(Structure& node, int depth = 0) {
    constexpr int kDepthMax = 64;
    std::uint8_t kind = 0;
    if (depth > kDepthMax || !take(kind) ||
        kind > static_cast<std::uint8_t>(Structure::Kind::tuple))
      return false;
    node.kind = static_cast<Structure::Kind>(kind);
    if (node.kind == Structure::Kind::leaf) return true;
    std::uint32_t count = 0;
    if (!take(count)) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t length = 0;
      std::string_view name;
      Structure child;
      if (!take(length) || !take(length, name) || !take_structure(child, depth + 1)) return false;
      node.children.emplace_back(std::string(name), std::move(child));
    }
    return true;
  }

  bool take_sample(const std::shared_ptr<const void>& owner, Sample& sample) {
    std::uint64_t structure_bytes = 0;
    std::uint64_t count = 0;
    Structure structure;
    const std::size_t before = at_ + sizeof structure_bytes;
    if (!take(structure_bytes) || !take_structure(structure) || at_ - before != structure_bytes ||
        !align() || !take(count))
      return false;
    if (count != structure.paths().size()) return false;
    std::vector<Tensor> leaves(count);
    for (Tensor& leaf : leaves)
      if (!take_tensor(std::nullopt, owner, leaf)) return false;
    sample = Sample::assemble(std::move(structure), std::move(leaves));
    return true;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::string row_file_start(const RowFileStart& start) {
  std::string text(kFileMagic);
  add_number(text, start.salt);
  add_number(text, start.data);
  add_number(text, crc32c(text));
  add_number(text, std::uint32_t{0});
  return text;
}

std::optional<RowFileStart> parse_row_file_start(std::string_view bytes) {
  if (bytes.size() < kRowFileStartBytes || !bytes.starts_with(kFileMagic)) return std::nullopt;
  if (crc32c(bytes.substr(0, 24)) != number_at<std::uint32_t>(bytes, 24)) return std::nullopt;
  return RowFileStart{number_at<std::uint64_t>(bytes, 8), number_at<std::uint64_t>(bytes, 16)};
}

RowHeaderBytes row_header(const RowHeader& header, std::uint64_t salt) {
  RowHeaderBytes bytes{};
  std::memcpy(bytes.data(), &kFrameMagic, 4);
  std::memcpy(bytes.data() + 8, &header.payload_bytes, 4);
  std::memcpy(bytes.data() + 12, &header.payload_crc, 4);
  std::memcpy(bytes.data() + 16, &header.number, 8);
  std::memcpy(bytes.data() + 24, &header.sample_id, 8);
  std::memcpy(bytes.data() + 32, &header.occurrence, 8);
  const std::uint32_t crc = crc32c({bytes.data() + 8, 32}, crc32c(bytes_of(salt)));
  std::memcpy(bytes.data() + 4, &crc, 4);
  return bytes;
}

std::optional<RowHeader> parse_row_header(std::string_view bytes, std::uint64_t salt) {
  if (bytes.size() < kRowHeaderBytes || number_at<std::uint32_t>(bytes, 0) != kFrameMagic)
    return std::nullopt;
  if (crc32c(bytes.substr(8, 32), crc32c(bytes_of(salt))) != number_at<std::uint32_t>(bytes, 4))
    return std::nullopt;
  RowHeader header{number_at<std::uint32_t>(bytes, 8), number_at<std::uint32_t>(bytes, 12),
                   number_at<std::uint64_t>(bytes, 16), number_at<std::uint64_t>(bytes, 24),
                   number_at<std::uint64_t>(bytes, 32)};
  if (header.payload_bytes > kRowBytesMax) return std::nullopt;
  return header;
}

RowCodec::RowCodec(ElementSpec spec) : spec_(std::move(spec)) {
  if (!spec_.known || !std::ranges::all_of(spec_.fields, is_dense)) return;
  std::uint64_t bytes = 0;
  for (const FieldSpec& field : spec_.fields) bytes += row_bytes(field);
  fixed_bytes_ = bytes;
}

std::optional<std::uint32_t> RowCodec::encode(const BlockView& block, std::size_t row,
                                              std::uint64_t number, std::uint64_t salt,
                                              RowFrames& frames) const {
  const std::size_t parts_before = frames.parts.size();
  frames.parts.emplace_back();  // the header
  PayloadWriter payload(frames);
  if (block.samples != nullptr) {
    const Sample& sample = block.samples[row];
    std::string structure;
    add_structure(sample.structure(), structure);
    payload.add_own(std::string(bytes_of(structure.size())));
    payload.add_own(std::move(structure));
    payload.align();
    payload.add_own(std::string(bytes_of(sample.leaves().size())));
    for (const Tensor& leaf : sample.leaves()) payload.add_tensor(leaf, true);
  }
  for (const Column& column : block.columns) {
    PENSTOCK_CHECK(column.others == nullptr);
    if (column.dense()) {
      payload.add(text_of({column.data + row * column.row_bytes, column.row_bytes}));
    } else {
      payload.add_tensor(column.tensors[row], false);
    }
  }
  if (payload.bytes() > kRowBytesMax) {
    frames.parts.resize(parts_before);
    return std::nullopt;
  }
  const auto payload_bytes = static_cast<std::uint32_t>(payload.bytes());
  const std::uint32_t crc = payload.crc();
  payload.align();
  const std::uint64_t occurrence =
      block.identity.occurrence == nullptr ? 0 : block.identity.occurrence[row];
  const RowHeaderBytes& header = frames.headers.emplace_back(
      row_header({payload_bytes, crc, number, block.identity.sample_id[row], occurrence}, salt));
  frames.parts[parts_before] = {header.data(), header.size()};
  frames.bytes += frame_bytes(payload_bytes);
  return payload_bytes;
}

bool RowCodec::decode(std::string_view payload, const std::shared_ptr<const void>& owner,
                      const BlockView& out, std::size_t row) const {
  PayloadReader reader(payload);
  if (out.samples != nullptr) return reader.take_sample(owner, out.samples[row]) && reader.at_end();
  for (std::size_t i = 0; i < out.columns.size(); ++i) {
    const Column& column = out.columns[i];
    const FieldSpec& field = spec_.fields[i];
    if (column.others != nullptr) column.others[row] = Tensor();
    if (column.dense()) {
      std::string_view bytes;
      if (!reader.take(column.row_bytes, bytes)) return false;
      if (!bytes.empty())
        std::memcpy(column.data + row * column.row_bytes, bytes.data(), bytes.size());
    } else if (Tensor& tensor = column.tensors[row];
               !reader.take_tensor(field.dtype, owner, tensor) ||
               !shape_fits(tensor.shape(), field.shape)) {
      return false;
    }
  }
  return reader.at_end();
}

}  // namespace penstock
