#pragma once
// FlatBuffers, as far as the metadata of Arrow files needs them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock {

/// A table, with its fields by number. A field that is not set has the default of its schema.
class FlatTable {
 public:
  /// A number or bool, and also the type of a union, which has the field before that of its table.
  template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  FlatTable& number(std::uint16_t field, T value) {
    return add(field, Kind::number, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  FlatTable& text(std::uint16_t field, std::string value) {
    return add(field, Kind::text, std::move(value));
  }
  FlatTable& table(std::uint16_t field, FlatTable value);
  FlatTable& tables(std::uint16_t field, std::vector<FlatTable> values);
  /// Structs of `struct_bytes` each, with members of up to 8 bytes, one after the other.
  FlatTable& structs(std::uint16_t field, std::string bytes, std::size_t struct_bytes);

  /// The buffer with this table as its root. Equal tables have equal bytes; it is to be placed at a
  /// multiple of 8, and its size is one.
  [[nodiscard]] std::string buffer() const;

 private:
  enum class Kind : std::uint8_t { number, text, table, tables, structs };
  struct Field {
    std::uint16_t number = 0;
    Kind kind = Kind::number;
    std::string bytes = {};
    std::size_t struct_bytes = 1;
    std::vector<FlatTable> inner = {};

    [[nodiscard]] std::size_t inline_bytes() const;
    /// Appends what the field refers to, and returns its position.
    [[nodiscard]] std::size_t append_to(std::string& out) const;
  };

  FlatTable& add(std::uint16_t field, Kind kind, std::string bytes) {
    fields_.push_back({field, kind, std::move(bytes)});
    return *this;
  }
  /// Appends the table and what it refers to, and returns its position.
  std::size_t append_to(std::string& out) const;

  std::vector<Field> fields_;
};

}  // namespace penstock
