#pragma once
// The fields that are read of JSON objects.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/block.h"
#include "penstock/json_lines.h"
#include "penstock/result.h"
#include "record/null_fill.h"
#include "record/record_kind.h"

namespace penstock {

/// Objects and lists in a record nest at most this deep.
inline constexpr int kJsonDepthMax = 64;

/// A field, or an object with fields inside.
struct JsonNode {
  static constexpr std::size_t kObject = SIZE_MAX;
  std::string key;
  std::size_t field = kObject;  // of the sample
  FieldSpec spec = {};          // of a field; otherwise only its path
  NullFill fill = {};
  std::vector<JsonNode> children = {};        // of an object, by key
  std::vector<std::size_t> usual_order = {};  // of the children, in a record

  [[nodiscard]] bool object() const { return field == kObject; }
  /// The number of the child `key`; the number of children if there is none. `hint` is where it is
  /// in the usual order, or should be next.
  [[nodiscard]] std::size_t find(std::string_view key, std::size_t& hint) const;
};

struct JsonFields {
  JsonNode root;
  ElementSpec spec;
  std::string left_out = {};  // by inference: "\"tags\" (lists of other things than numbers)"

  void identify(Digest& digest) const;
};

/// Those of the options, or of the first records. Throws ConfigError if there are none, and for
/// `nulls` that fit no field.
JsonFields json_fields(const JsonLinesOptions& options, const FirstRecords& first);

/// What a parser knows of a number.
struct JsonNumber {
  enum class Kind : std::uint8_t { whole, large, real };
  Kind kind = Kind::real;
  std::int64_t whole = 0;
  std::uint64_t large = 0;  // beyond i64
  double real = 0;
};
enum class NumberFit : std::uint8_t { good, not_whole, out_of_range };
/// Writes a number as one value of a numeric `dtype`.
NumberFit put_number(const JsonNumber& number, Dtype dtype, std::byte* to);

/// The bytes of a list in `record`; nothing if it cannot have as many values.
std::optional<std::size_t> json_list_bytes(const Shape& shape, Dtype dtype,
                                           std::string_view record);

/// Writes what nulls become to the field of `node`, or to all inside of it. Returns the node
/// without such a value, if there is one.
const JsonNode* put_null(const JsonNode& node, const BlockView& out, std::size_t row);

/// The JSON text of the value of the field `path` of an object; empty if it is not there. `object`
/// must be valid JSON.
std::string_view json_text_at(std::string_view object, std::string_view path);

}  // namespace penstock
