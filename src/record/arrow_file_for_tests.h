#pragma once
// Reads Arrow files as the format's specification describes them, and checks what it says about
// positions and alignment.

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::testing {

template <typename T>
T number_at(std::string_view bytes, std::size_t at) {
  if (at % alignof(T) != 0) throw std::runtime_error("a number is not aligned");
  T value;
  if (at + sizeof value > bytes.size()) throw std::runtime_error("a number is outside");
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// A table of a FlatBuffer, which begins at a multiple of 8.
class FlatTableView {
 public:
  static FlatTableView root(std::string_view buffer) {
    return {buffer, number_at<std::uint32_t>(buffer, 0)};
  }
  FlatTableView(std::string_view buffer, std::size_t at) : buffer_(buffer), at_(at) {}

  [[nodiscard]] bool has(std::uint16_t field) const { return place(field) != 0; }
  template <typename T>
  [[nodiscard]] T number(std::uint16_t field, T missing = {}) const {
    return has(field) ? number_at<T>(buffer_, place(field)) : missing;
  }
  [[nodiscard]] FlatTableView table(std::uint16_t field) const { return {buffer_, target(field)}; }
  [[nodiscard]] std::string_view text(std::uint16_t field) const {
    const std::size_t at = target(field);
    const auto size = number_at<std::uint32_t>(buffer_, at);
    if (buffer_.at(at + 4 + size) != '\0') throw std::runtime_error("no NUL behind a text");
    return buffer_.substr(at + 4, size);
  }
  [[nodiscard]] std::vector<FlatTableView> tables(std::uint16_t field) const {
    std::vector<FlatTableView> all;
    const std::size_t at = target(field);
    const auto count = number_at<std::uint32_t>(buffer_, at);
    for (std::size_t i = 1; i <= count; ++i)
      all.emplace_back(buffer_, at + i * 4 + number_at<std::uint32_t>(buffer_, at + i * 4));
    return all;
  }
  /// The members of structs of 64-bit numbers, one after the other.
  [[nodiscard]] std::vector<std::uint64_t> structs(std::uint16_t field, std::size_t members) const {
    std::vector<std::uint64_t> all;
    const std::size_t at = target(field);
    const auto count = number_at<std::uint32_t>(buffer_, at);
    for (std::size_t i = 0; i < count * members; ++i)
      all.push_back(number_at<std::uint64_t>(buffer_, at + 4 + i * 8));
    return all;
  }

 private:
  [[nodiscard]] std::size_t place(std::uint16_t field) const {
    const std::size_t slots = at_ - static_cast<std::size_t>(number_at<std::int32_t>(buffer_, at_));
    const std::size_t slot = 4 + std::size_t{2} * field;
    if (slot >= number_at<std::uint16_t>(buffer_, slots)) return 0;
    const auto inside = number_at<std::uint16_t>(buffer_, slots + slot);
    return inside == 0 ? 0 : at_ + inside;
  }
  [[nodiscard]] std::size_t target(std::uint16_t field) const {
    const std::size_t at = place(field);
    if (at == 0) throw std::runtime_error("a table is not there");
    return at + number_at<std::uint32_t>(buffer_, at);
  }

  std::string_view buffer_;
  std::size_t at_;
};

/// A record batch: the lengths of its columns, and their buffers.
struct ArrowBatchView {
  std::uint64_t rows = 0;
  std::vector<std::uint64_t> lengths;
  std::vector<std::string_view> buffers;

  template <typename T>
  [[nodiscard]] std::vector<T> numbers(std::size_t buffer) const {
    std::vector<T> all(buffers.at(buffer).size() / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), buffers[buffer].data(), all.size() * sizeof(T));
    return all;
  }
};

/// Whole files. Throws if anything is not where it should be.
class ArrowFileView {
 public:
  explicit ArrowFileView(std::string_view file) : file_(file) {
    expect(file.starts_with(std::string_view("ARROW1\0\0", 8)) && file.ends_with("ARROW1"),
           "magic");
    const std::size_t end = file.size() - 10;
    std::int32_t bytes = 0;
    std::memcpy(&bytes, file.data() + end, sizeof bytes);
    const std::size_t start = end - static_cast<std::size_t>(bytes);
    expect(start % 8 == 0, "the place of the footer");
    const auto footer = FlatTableView::root(file.substr(start, static_cast<std::size_t>(bytes)));
    expect(footer.number<std::int16_t>(0) == 4, "the version");
    schema_ = describe(footer.table(1));
    expect(footer.structs(2, 3).empty(), "no dictionaries");
    std::size_t at = 8;
    const auto first = message(at, 1);
    expect(describe(first.table(2)) == schema_, "the same schema twice");
    const auto blocks = footer.structs(3, 3);
    for (std::size_t i = 0; i < blocks.size(); i += 3) {
      expect(blocks[i] == at, "the offset of a block");
      add_batch(at, blocks[i + 1], blocks[i + 2]);
    }
    expect(number_at<std::uint32_t>(file, at) == 0xFFFFFFFF &&
               number_at<std::uint32_t>(file, at + 4) == 0 && at + 8 == start,
           "the end of the messages");
  }

  /// "label: 2 64, x: 16 2 <item: 3 1>": the type's number and its numbers, and children.
  [[nodiscard]] const std::string& schema() const { return schema_; }
  [[nodiscard]] const std::vector<ArrowBatchView>& batches() const { return batches_; }
  [[nodiscard]] std::uint64_t rows() const {
    std::uint64_t rows = 0;
    for (const ArrowBatchView& batch : batches_) rows += batch.rows;
    return rows;
  }

 private:
  static void expect(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string("Arrow file: wrong: ") + what);
  }

  static std::string describe(const FlatTableView& table, std::uint16_t children = 1) {
    std::string text;
    for (const FlatTableView& field : table.tables(children)) {
      const auto type = field.number<std::uint8_t>(2);
      text += (text.empty() ? "" : ", ") + std::string(field.text(0)) + ": " + std::to_string(type);
      expect(field.number<bool>(1), "nullable");
      const FlatTableView details = field.table(3);
      if (type == 2)
        text += (details.number<bool>(1) ? " i" : " u") +
                std::to_string(details.number<std::int32_t>(0));
      if (type == 3) text += " " + std::to_string(details.number<std::int16_t>(0));
      if (type == 16) text += " " + std::to_string(details.number<std::int32_t>(0));
      if (const std::string inner = describe(field, 5); !inner.empty()) text += " <" + inner + ">";
    }
    return text;
  }

  /// The message at `at`, which becomes that of its body.
  FlatTableView message(std::size_t& at, std::uint8_t kind) {
    expect(number_at<std::uint32_t>(file_, at) == 0xFFFFFFFF, "the beginning of a message");
    const auto bytes = number_at<std::uint32_t>(file_, at + 4);
    const auto table = FlatTableView::root(file_.substr(at + 8, bytes));
    expect(table.number<std::int16_t>(0) == 4 && table.number<std::uint8_t>(1) == kind, "a kind");
    at += 8 + bytes;
    expect(at % 64 == 0, "the alignment of a body");
    return table;
  }

  void add_batch(std::size_t& at, std::uint64_t message_bytes, std::uint64_t body_bytes) {
    const std::size_t start = at;
    const FlatTableView head = message(at, 3);
    expect(at - start == message_bytes, "the size of a message");
    expect(head.number<std::uint64_t>(3) == body_bytes, "the size of a body");
    const FlatTableView table = head.table(2);
    ArrowBatchView batch{table.number<std::uint64_t>(0), {}, {}};
    const auto columns = table.structs(1, 2);
    for (std::size_t i = 0; i < columns.size(); i += 2) {
      batch.lengths.push_back(columns[i]);
      expect(columns[i + 1] == 0, "no nulls");
    }
    const auto buffers = table.structs(2, 2);
    for (std::size_t i = 0; i < buffers.size(); i += 2) {
      expect(buffers[i] % 64 == 0 && buffers[i] + buffers[i + 1] <= body_bytes, "a buffer");
      batch.buffers.push_back(file_.substr(at + buffers[i], buffers[i + 1]));
    }
    batches_.push_back(std::move(batch));
    at += body_bytes;
  }

  std::string_view file_;
  std::string schema_;
  std::vector<ArrowBatchView> batches_;
};

}  // namespace penstock::testing
