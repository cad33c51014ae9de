// tested in src/record/litdata_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "record/litdata.h"
#include "record/unsafe_path.h"

namespace penstock {
namespace {

std::size_t leaves_of(const Structure& structure) {
  if (structure.kind == Structure::Kind::leaf) return 1;
  std::size_t leaves = 0;
  for (const auto& [name, child] : structure.children) leaves += leaves_of(child);
  return leaves;
}

/// A member that may be missing or null, as in the indexes of older versions.
const Json* member(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

class LitDataIndexReader {
 public:
  explicit LitDataIndexReader(const std::string& file) : file_(file) {}

  LitDataIndex read(std::string_view text) {
    const std::optional<Json> json = parse_json(text);
    if (!json) refuse("it is not JSON");
    LitDataIndex index;
    try {
      read_config(json->at("config"), index);
      for (const Json& chunk : json->at("chunks")) add(chunk, index);
    } catch (const Json::exception& error) {
      refuse(error.what());
    }
    if (index.chunks.empty()) refuse("it lists no chunks");
    if (index.tokens && index.serializers.size() != 1)
      refuse("its chunks have tokens, and its items several values");
    return index;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason, const std::string& remedy = {}) const {
    Where where;
    where.file = file_;
    throw ConfigError(fmt::format("from_litdata: {} is no index of LitData that can be read: {}",
                                  printable(file_), printable(reason)),
                      where, remedy);
  }

  void read_config(const Json& config, LitDataIndex& index) const {
    check_loader(config);
    if (member(config, "encryption"))
      refuse("its chunks are encrypted", "write them again without `encryption`");
    if (const Json* const name = member(config, "compression")) {
      const Json* const level = member(config, "compression_level");
      index.compression = name->get<std::string>();
      index.items_compressed = level && level->get<std::string>() == "sample";
    }
    index.serializers = config.at("data_format").get<std::vector<std::string>>();
    if (const Json* const spec = member(config, "data_spec"))
      index.structure = structure_of(spec->get<std::string>());
    const std::size_t leaves = leaves_of(index.structure);
    if (leaves != index.serializers.size())
      refuse(fmt::format("its data_spec has {} values, and its data_format {}", leaves,
                         index.serializers.size()));
    if (leaves == 0) refuse("its items have no values");
  }

  void check_loader(const Json& config) const {
    const Json* const loader = member(config, "item_loader");
    const std::string name = loader ? loader->get<std::string>() : "PyTreeLoader";
    if (name == "ParquetLoader")
      refuse("it lists tables of Parquet", "from_parquet reads them without an index");
    if (name != "PyTreeLoader" && name != "TokensLoader")
      refuse(fmt::format("its item_loader is \"{}\"", name),
             "write the data again for PyTreeLoader or TokensLoader");
  }

  /// Of "[1, {node}]".
  [[nodiscard]] Structure structure_of(const std::string& text) const {
    const std::optional<Json> spec = parse_json(text);
    if (!spec) refuse("its data_spec is not JSON");
    const auto version = whole_number<std::int64_t>(spec->at(0));
    if (version != 1) refuse(fmt::format("the version of its data_spec is {}, not 1", version));
    return structure_of(spec->at(1));
  }

  [[nodiscard]] Structure structure_of(const Json& node) const {
    Structure structure;
    const Json* const type = member(node, "type");
    if (!type) return structure;
    const auto name = type->get<std::string>();
    std::vector<Structure> parts;
    for (const Json& child : node.at("children_spec")) parts.push_back(structure_of(child));
    if (name == "builtins.tuple" || name == "builtins.list")
      return Structure::tuple(std::move(parts));
    if (name != "builtins.dict" && name != "collections.OrderedDict")
      refuse(fmt::format("its items contain a {}", name), "store dicts, tuples and lists");
    const std::optional<Json> keys = parse_json(node.at("context").get<std::string>());
    if (!keys || keys->size() != parts.size())
      refuse("a dict of its data_spec has not as many keys as values");
    structure.kind = Structure::Kind::dict;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Json& key = keys->at(i);
      if (!key.is_string() || key.get_ref<const std::string&>().empty())
        refuse(fmt::format("a key of a dict is {}", key.dump()), "name fields by text");
      structure.children.emplace_back(key.get<std::string>(), std::move(parts[i]));
    }
    return structure;
  }

  void add(const Json& json, LitDataIndex& index) const {
    LitDataChunk chunk{.name = json.at("filename").get<std::string>(),
                       .bytes = whole_number<std::uint64_t>(json.at("chunk_bytes")),
                       .items = whole_number<std::uint32_t>(json.at("chunk_size"))};
    if (chunk.name.empty() || is_unsafe_path(chunk.name))
      refuse(fmt::format("\"{}\" is not a name below its folder", chunk.name));
    const Json* const dim = member(json, "dim");
    if (dim) chunk.tokens = whole_number<std::uint64_t>(*dim);
    if (!index.chunks.empty() && index.tokens != (dim != nullptr))
      refuse(fmt::format("chunk \"{}\" {} tokens, unlike the first", chunk.name,
                         dim ? "has" : "has no"));
    index.tokens = dim != nullptr;
    index.chunks.push_back(std::move(chunk));
  }

  const std::string& file_;
};

}  // namespace

LitDataIndex parse_litdata_index(std::string_view text, const std::string& file) {
  return LitDataIndexReader(file).read(text);
}

}  // namespace penstock
