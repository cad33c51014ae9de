// tested in src/record/mds_test.cc
#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "record/mds.h"
#include "record/unsafe_path.h"

namespace penstock {
namespace {

class MdsIndexReader {
 public:
  explicit MdsIndexReader(const std::string& file) : file_(file) {}

  MdsIndex read(std::string_view text) {
    const std::optional<Json> json = parse_json(text);
    if (!json) refuse("it is not JSON");
    MdsIndex index;
    try {
      check_version(*json);
      for (const Json& shard : json->at("shards")) add(shard, index);
    } catch (const Json::exception& error) {
      refuse(error.what());
    }
    if (index.shards.empty()) refuse("it lists no shards");
    return index;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason, const std::string& remedy = {}) const {
    Where where;
    where.file = file_;
    throw ConfigError(fmt::format("from_mds: {} is no index of MDS shards: {}", printable(file_),
                                  printable(reason)),
                      where, remedy);
  }

  void check_version(const Json& json) const {
    const auto version = whole_number<std::int64_t>(json.at("version"));
    if (version != 2) refuse(fmt::format("its version is {}, not 2", version));
  }

  void add(const Json& json, MdsIndex& index) const {
    check_version(json);
    const auto format = json.at("format").get<std::string>();
    if (format != "mds")
      refuse(fmt::format("a shard is in the format \"{}\"", format),
             "csv is read by from_csv, jsonl by from_jsonl");
    const Json& raw = json.at("raw_data");
    MdsShard shard{raw.at("basename").get<std::string>(),
                   whole_number<std::uint64_t>(raw.at("bytes")),
                   whole_number<std::uint64_t>(json.at("samples"))};
    if (shard.name.empty() || is_unsafe_path(shard.name))
      refuse(fmt::format("\"{}\" is not a name below its folder", shard.name));
    const auto packed = json.find("zip_data");
    if (packed != json.end() && !packed->is_null())
      shard.compressed_name = packed->at("basename").get<std::string>();
    std::vector<MdsColumn> columns = columns_of(json);
    if (index.shards.empty())
      index.columns = std::move(columns);
    else if (columns != index.columns)
      refuse(fmt::format("shard \"{}\" has other columns than the first", shard.name));
    index.shards.push_back(std::move(shard));
  }

  [[nodiscard]] std::vector<MdsColumn> columns_of(const Json& json) const {
    const Json& names = json.at("column_names");
    const Json& encodings = json.at("column_encodings");
    const Json& sizes = json.at("column_sizes");
    if (names.size() != encodings.size() || names.size() != sizes.size() || names.empty())
      refuse("the columns of a shard have not as many names, encodings and sizes");
    std::vector<MdsColumn> columns;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < names.size(); ++i) {
      MdsColumn column{names.at(i).get<std::string>(), encodings.at(i).get<std::string>(), {}};
      if (!sizes.at(i).is_null()) column.bytes = whole_number<std::uint32_t>(sizes.at(i));
      if (!seen.insert(column.name).second)
        refuse(fmt::format("there are two columns \"{}\"", column.name));
      columns.push_back(std::move(column));
    }
    return columns;
  }

  const std::string& file_;
};

}  // namespace

MdsIndex parse_mds_index(std::string_view text, const std::string& file) {
  return MdsIndexReader(file).read(text);
}

}  // namespace penstock
