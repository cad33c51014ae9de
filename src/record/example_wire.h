#pragma once
// tf.train.Example and SequenceExample as they are stored: maps from names to lists of values.
//
//   Example         { Features features = 1; }
//   SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
//   Features        { map<string, Feature> feature = 1; }
//   FeatureLists    { map<string, FeatureList> feature_list = 1; }
//   FeatureList     { repeated Feature feature = 1; }
//   Feature         { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
//   ...List         { repeated value = 1; }

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/dtype.h"
#include "record/protobuf_wire.h"

namespace penstock {

enum class ListKind : std::uint8_t { none, bytes, floats, ints };

/// "texts", "floats" or "integers".
std::string_view plural(ListKind kind);

/// "1 text", "3 floats".
std::string counted(std::size_t count, ListKind kind);

/// The list of a Feature, and the fields of that message.
struct ValueList {
  ListKind kind = ListKind::none;
  std::string_view body;
};

/// The list of `feature`; nothing if it is malformed.
std::optional<ValueList> read_feature(std::string_view feature);

/// How many values it has; nothing if it is malformed.
std::optional<std::size_t> count_values(const ValueList& list);

/// The values of a list of bytes: how many, and the first one.
struct Texts {
  std::size_t count = 0;
  std::string_view first = {};
};
/// Nothing if `list`, of bytes, is malformed.
std::optional<Texts> read_texts(const ValueList& list);

enum class Copied : std::uint8_t { all, other_count, misfit, malformed };
struct CopyOutcome {
  Copied copied = Copied::all;
  std::int64_t misfit = 0;  // the value that `dtype` cannot hold
};
/// True if values of numeric `dtype` are stored in such lists.
bool holds(ListKind kind, Dtype dtype);
/// Writes the values of a list that holds `dtype` to `to`, if there are exactly `count`.
CopyOutcome copy_values(const ValueList& list, Dtype dtype, std::size_t count, std::byte* to);

/// Calls `visit(is_list, name, value)` for each entry of the maps: value is a Feature, or a
/// FeatureList if `is_list`. A later entry of the same name replaces an earlier one. Returns false
/// if the record is malformed.
template <typename Visit>
bool visit_features(std::string_view record, Visit visit) {
  WireReader parts(record);
  WireField part;
  while (parts.next(part)) {
    if (part.number > 2) continue;
    if (part.type != WireField::Type::bytes) return false;
    WireReader entries(part.bytes);
    WireField entry;
    while (entries.next(entry)) {
      if (entry.number != 1) continue;
      if (entry.type != WireField::Type::bytes) return false;
      WireReader pair(entry.bytes);
      WireField side;
      std::string_view sides[2];
      bool seen[2] = {};
      while (pair.next(side)) {
        if (side.number > 2) continue;
        const std::size_t which = side.number - 1;
        if (side.type != WireField::Type::bytes || seen[which]) return false;
        sides[which] = side.bytes;
        seen[which] = true;
      }
      if (!pair.ok()) return false;
      visit(part.number == 2, sides[0], sides[1]);
    }
    if (!entries.ok()) return false;
  }
  return parts.ok();
}

}  // namespace penstock
