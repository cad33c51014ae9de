// Nested lists and dicts. In older chunks they are JSON texts; later ones begin with a tag:
//
//   0 JSON text; 1, 2, 3, 4 a list of texts, i64, f64 or bool; 5 a dict; 6 a list of dicts with the
//   same keys; 7, 8, 9, 10, 11 a text, i64, f64, bool, null
//
// Counts and sizes of texts are u32.
// tested in src/record/litdata_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "record/litdata_value.h"

namespace penstock {
namespace {

constexpr int kDepthMax = 64;
constexpr std::uint64_t kEmptyDictsMax = 100'000;  // nothing is stored for each of them
// The keys of a list of dicts are stored once, and written for each dict.
constexpr std::size_t kTextBytesMax = std::size_t{256} << 20;

/// Reads the value and writes its text. Once something is wrong it reads nothing more.
class NestedReader {
 public:
  explicit NestedReader(std::string_view bytes) : bytes_(bytes) {}

  Result<std::string> read() {
    value(0);
    if (wrong_.empty() && !bytes_.empty()) refuse("has bytes after its nested value");
    if (!wrong_.empty()) return Failure{wrong_};
    return std::move(text_);
  }

 private:
  void refuse(std::string reason) {
    if (wrong_.empty()) wrong_ = std::move(reason);
    bytes_ = {};
  }

  std::string_view take(std::uint64_t bytes) {
    if (bytes > bytes_.size()) {
      refuse("ends within a nested value");
      return {};
    }
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(bytes));
    bytes_.remove_prefix(taken.size());
    return taken;
  }

  template <typename T>
  T number() {
    T value{};
    std::ranges::copy(take(sizeof value), reinterpret_cast<char*>(&value));
    return value;
  }

  unsigned byte() {
    const std::string_view taken = take(1);
    return taken.empty() ? 0U : static_cast<unsigned char>(taken.front());
  }

  std::string_view string() { return take(number<std::uint32_t>()); }

  void put_string() {
    const std::string_view taken = string();
    if (!is_utf8(taken)) return refuse("has a text that is not UTF-8");
    text_ += Json(std::string(taken)).dump();
  }
  void put_integer() { text_ += fmt::format("{}", number<std::int64_t>()); }
  void put_bool() { text_ += byte() != 0 ? "true" : "false"; }

  /// As Python writes them.
  void put_real() {
    const auto real = number<double>();
    if (std::isnan(real)) {
      text_ += "NaN";
    } else if (std::isinf(real)) {
      text_ += real > 0 ? "Infinity" : "-Infinity";
    } else {
      const std::string text = fmt::format("{}", real);
      text_ += text;
      if (text.find_first_of(".e") == std::string::npos) text_ += ".0";
    }
  }

  template <typename Put>
  void list(Put put) {
    const auto count = number<std::uint32_t>();
    text_ += '[';
    for (std::uint32_t i = 0; i < count && wrong_.empty(); ++i) {
      if (i > 0) text_ += ',';
      put();
    }
    text_ += ']';
  }

  void dict(int depth) {
    const auto count = number<std::uint32_t>();
    text_ += '{';
    for (std::uint32_t i = 0; i < count && wrong_.empty(); ++i) {
      if (i > 0) text_ += ',';
      put_string();
      text_ += ':';
      value(depth + 1);
    }
    text_ += '}';
  }

  void dicts() {
    const auto count = number<std::uint32_t>();
    const auto key_count = number<std::uint32_t>();
    std::vector<std::string> keys;
    for (std::uint32_t i = 0; i < key_count && wrong_.empty(); ++i) {
      const std::string_view key = string();
      if (!is_utf8(key)) return refuse("has a key that is not UTF-8");
      keys.push_back(Json(std::string(key)).dump());
    }
    if (keys.empty() && count > kEmptyDictsMax)
      return refuse(fmt::format("has {} dicts without keys", count));
    text_ += '[';
    for (std::uint32_t i = 0; i < count && wrong_.empty(); ++i) {
      if (text_.size() > kTextBytesMax) return refuse("is larger than 256 MB as JSON");
      text_ += i > 0 ? ",{" : "{";
      for (std::size_t key = 0; key < keys.size() && wrong_.empty(); ++key) {
        if (key > 0) text_ += ',';
        text_ += keys[key];
        text_ += ':';
        part_of_dict();
      }
      text_ += '}';
    }
    text_ += ']';
  }

  void part_of_dict() {
    const auto tag = byte();
    switch (tag) {
      case 0x10:
        text_ += "null";
        return;
      case 0x11:
        return put_string();
      case 0x12:
        return put_integer();
      case 0x13:
        return put_real();
      case 0x14:
        return put_bool();
      default:
        return refuse(fmt::format("has a nested value of the unknown kind {}", tag));
    }
  }

  void put_json() {
    const std::string_view taken = string();
    if (!wrong_.empty()) return;
    if (!is_utf8(taken)) return refuse("has JSON that is not UTF-8");
    text_ += taken;
  }

  void value(int depth) {
    if (depth > kDepthMax) return refuse("nests too deep");
    const auto tag = byte();
    switch (tag) {
      case 0:
        return put_json();
      case 1:
        return list([this] { put_string(); });
      case 2:
        return list([this] { put_integer(); });
      case 3:
        return list([this] { put_real(); });
      case 4:
        return list([this] { put_bool(); });
      case 5:
        return dict(depth);
      case 6:
        return dicts();
      case 7:
        return put_string();
      case 8:
        return put_integer();
      case 9:
        return put_real();
      case 10:
        return put_bool();
      case 11:
        text_ += "null";
        return;
      default:
        return refuse(fmt::format("has a nested value of the unknown kind {}", tag));
    }
  }

  std::string_view bytes_;
  std::string text_;
  std::string wrong_;
};

}  // namespace

Result<std::string> litdata_json_text(std::string_view bytes) {
  if (!bytes.starts_with('[') && !bytes.starts_with('{')) return NestedReader(bytes).read();
  if (!is_utf8(bytes)) return Failure{"has JSON that is not UTF-8"};
  return std::string(bytes);
}

}  // namespace penstock
