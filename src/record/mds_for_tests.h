#pragma once
// MDS shards and their index, byte by byte as MosaicML Streaming 0.13 writes them.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "record/compressed_for_tests.h"

namespace penstock::for_tests {

struct MdsTestColumn {
  std::string name;
  std::string encoding;
  int bytes = -1;  // -1 if it varies
};

/// A sample: the bytes of its columns.
inline std::string mds_sample(const std::vector<MdsTestColumn>& columns,
                              const std::vector<std::string>& values) {
  std::string sizes;
  std::string data;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].bytes < 0) sizes += little_bytes(values[i].size(), 4);
    data += values[i];
  }
  return sizes + data;
}

inline Json mds_columns(const std::vector<MdsTestColumn>& columns) {
  Json json = {{"compression", nullptr},
               {"format", "mds"},
               {"hashes", Json::array()},
               {"size_limit", 67'108'864},
               {"version", 2}};
  for (const char* key : {"column_names", "column_encodings", "column_sizes"})
    json[key] = Json::array();
  for (const MdsTestColumn& column : columns) {
    json["column_names"].push_back(column.name);
    json["column_encodings"].push_back(column.encoding);
    json["column_sizes"].push_back(column.bytes < 0 ? Json() : Json(column.bytes));
  }
  return json;
}

inline std::string mds_shard(const std::vector<MdsTestColumn>& columns,
                             const std::vector<std::string>& samples) {
  const std::string config = mds_columns(columns).dump();
  std::uint64_t offset = 4 * (samples.size() + 2) + config.size();
  std::string header = little_bytes(samples.size(), 4) + little_bytes(offset, 4);
  std::string data;
  for (const std::string& sample : samples) {
    offset += sample.size();
    header += little_bytes(offset, 4);
    data += sample;
  }
  return header + config + data;
}

/// The entry of a shard in an index.
inline Json mds_entry(const std::vector<MdsTestColumn>& columns, const std::string& name,
                      std::size_t bytes, std::size_t samples) {
  Json json = mds_columns(columns);
  json["raw_data"] = {{"basename", name}, {"bytes", bytes}, {"hashes", Json::object()}};
  json["samples"] = samples;
  json["zip_data"] = nullptr;
  return json;
}

/// An array of one-byte sizes, as "ndarray:DTYPE" stores it.
inline std::string mds_array(const std::vector<int>& sizes, const std::string& values) {
  std::string text(1, static_cast<char>(sizes.size() * 4));
  for (const int size : sizes) text += static_cast<char>(size);
  return text + values;
}

}  // namespace penstock::for_tests
