#pragma once
// For tests: messages of tf.train.Example, field by field.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/tfrecord.h"

namespace penstock::messages {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

/// A field that is bytes or a message.
inline std::string field(std::uint32_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

inline std::string four(float value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Features, as Python writes them.
inline std::string floats(const std::vector<float>& values) {
  std::string packed;
  for (const float value : values) packed += four(value);
  return field(2, values.empty() ? "" : field(1, packed));
}
inline std::string ints(const std::vector<std::int64_t>& values) {
  std::string packed;
  for (const std::int64_t value : values) packed += varint(static_cast<std::uint64_t>(value));
  return field(3, values.empty() ? "" : field(1, packed));
}
inline std::string texts(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += field(1, value);
  return field(1, list);
}

/// The same with a tag for each value.
inline std::string unpacked_floats(const std::vector<float>& values) {
  std::string list;
  for (const float value : values) list += varint(1 << 3 | 5) + four(value);
  return field(2, list);
}
inline std::string unpacked_ints(const std::vector<std::int64_t>& values) {
  std::string list;
  for (const std::int64_t value : values)
    list += varint(1 << 3) + varint(static_cast<std::uint64_t>(value));
  return field(3, list);
}

/// An entry of a map: a Feature in Features, or a FeatureList in FeatureLists.
inline std::string entry(std::string_view name, std::string_view value) {
  return field(1, field(1, name) + field(2, value));
}
/// A FeatureList.
inline std::string steps(const std::vector<std::string>& features) {
  std::string list;
  for (const std::string& feature : features) list += field(1, feature);
  return list;
}

/// An Example of these entries, which is also the context of a SequenceExample.
inline std::string example(const std::vector<std::string>& entries) {
  std::string features;
  for (const std::string& one : entries) features += one;
  return field(1, features);
}
inline std::string sequence_example(const std::vector<std::string>& context,
                                    const std::vector<std::string>& lists) {
  std::string feature_lists;
  for (const std::string& one : lists) feature_lists += one;
  return example(context) + field(2, feature_lists);
}

/// A whole record.
inline std::string framed(std::string_view payload) {
  std::string out;
  append_tfrecord(out, payload);
  return out;
}

}  // namespace penstock::messages
