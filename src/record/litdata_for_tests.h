#pragma once
// Chunks of LitData and their index, byte by byte as LitData 0.2.76 writes them.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "record/compressed_for_tests.h"

namespace penstock::for_tests {

/// An item: the sizes of its leaves, and the leaves.
inline std::string litdata_item(const std::vector<std::string>& leaves) {
  std::string sizes;
  std::string data;
  for (const std::string& leaf : leaves) {
    sizes += little_bytes(leaf.size(), 4);
    data += leaf;
  }
  return sizes + data;
}

inline std::string litdata_chunk(const std::vector<std::string>& items) {
  std::uint64_t offset = 4 * (items.size() + 2);
  std::string header = little_bytes(items.size(), 4) + little_bytes(offset, 4);
  std::string data;
  for (const std::string& item : items) {
    offset += item.size();
    header += little_bytes(offset, 4);
    data += item;
  }
  return header + data;
}

/// A node of a data_spec; a leaf without children.
inline Json litdata_leaf() {
  return {{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}};
}
inline Json litdata_dict(const std::vector<std::pair<std::string, Json>>& children) {
  Json keys = Json::array();
  Json specs = Json::array();
  for (const auto& [key, child] : children) {
    keys.push_back(key);
    specs.push_back(child);
  }
  return {{"type", "builtins.dict"}, {"context", keys.dump()}, {"children_spec", specs}};
}
inline Json litdata_tuple(const std::vector<Json>& children,
                          const std::string& type = "builtins.tuple") {
  return {{"type", type}, {"context", "null"}, {"children_spec", children}};
}

/// The entry of a chunk in an index.
inline Json litdata_entry(const std::string& name, std::size_t bytes, std::size_t items) {
  return {{"filename", name}, {"chunk_bytes", bytes}, {"chunk_size", items}, {"dim", nullptr}};
}

inline Json litdata_index(const Json& spec, const std::vector<std::string>& serializers,
                          const std::vector<Json>& chunks) {
  return {{"chunks", chunks},
          {"config",
           {{"chunk_bytes", nullptr},
            {"chunk_size", 64},
            {"compression", nullptr},
            {"compression_batch_size", nullptr},
            {"compression_level", nullptr},
            {"data_format", serializers},
            {"data_spec", Json::array({1, spec}).dump()},
            {"encryption", nullptr},
            {"ipc_compression", nullptr},
            {"item_loader", "PyTreeLoader"}}},
          {"updated_at", "1795120173.5"}};
}

/// An array after its dtype and shape, as "numpy" stores it.
inline std::string litdata_array(unsigned dtype, const std::vector<unsigned>& sizes,
                                 const std::string& values) {
  std::string text = little_bytes(dtype, 4) + little_bytes(sizes.size(), 4);
  for (const unsigned size : sizes) text += little_bytes(size, 4);
  return text + values;
}

/// The same, as "tensor" stores it.
inline std::string litdata_tensor(unsigned dtype, const std::vector<unsigned>& sizes,
                                  const std::string& values) {
  const auto big = [](std::uint64_t value) {
    const std::string little = little_bytes(value, 4);
    return std::string(little.rbegin(), little.rend());
  };
  std::string text = big(dtype) + big(sizes.size());
  for (const unsigned size : sizes) text += big(size);
  return text + values;
}

}  // namespace penstock::for_tests
