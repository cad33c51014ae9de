// tested in src/verb/serialize_test.cc
#include "verb/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace penstock {

// Each verb defines `Dataset parse_WORD(const Parsed&)` in its file. Data in memory and maps are
// not listed: they are found by name, and in the catalogue of ops.
#define PENSTOCK_VERBS(VERB) \
  VERB(audio_files)          \
  VERB(audio_folder)         \
  VERB(batch)                \
  VERB(bucket)               \
  VERB(buckets)              \
  VERB(cache)                \
  VERB(concatenate)          \
  VERB(enumerate)            \
  VERB(filter)               \
  VERB(flat_map)             \
  VERB(from_csv)             \
  VERB(from_jsonl)           \
  VERB(from_litdata)         \
  VERB(from_mds)             \
  VERB(from_megatron)        \
  VERB(from_npy)             \
  VERB(from_paths)           \
  VERB(from_records)         \
  VERB(from_tar)             \
  VERB(from_text)            \
  VERB(from_tfrecord)        \
  VERB(image_folder)         \
  VERB(interleave)           \
  VERB(list_files)           \
  VERB(load)                 \
  VERB(pack)                 \
  VERB(padded_batch)         \
  VERB(prefetch)             \
  VERB(range)                \
  VERB(repeat)               \
  VERB(scan)                 \
  VERB(select)               \
  VERB(shard)                \
  VERB(shuffle)              \
  VERB(skip)                 \
  VERB(split)                \
  VERB(stream_buckets)       \
  VERB(take)                 \
  VERB(take_while)           \
  VERB(tokens)               \
  VERB(unbatch)              \
  VERB(window)               \
  VERB(with_options)         \
  VERB(zip)

#define PENSTOCK_DECLARE(word) Dataset parse_##word(const Parsed& parsed);
PENSTOCK_VERBS(PENSTOCK_DECLARE)
Dataset parse_map(const Parsed& parsed);

namespace {

struct CatalogueEntry {
  std::string_view word;
  Dataset (*parse)(const Parsed& parsed);
};
#define PENSTOCK_ENTRY(word) CatalogueEntry{#word, parse_##word},
constexpr std::array kVerbs{PENSTOCK_VERBS(PENSTOCK_ENTRY)};

[[noreturn]] void missing(const char* what, const std::string& name) {
  throw ConfigError(fmt::format("the plan needs the {} \"{}\", which was not found", what, name),
                    {}, "pass a dataset that contains it");
}

template <typename Value>
const Value& found(const std::map<std::string, Value>& values, const char* what,
                   const std::string& name) {
  const auto value = values.find(name);
  if (value == values.end()) missing(what, name);
  return value->second;
}

}  // namespace

void Named::collect(const Node& node) {
  if (!seen_.insert(&node).second) return;
  for (const NodePtr& input : node.inputs) collect(*input);
  if (const auto op = node.verb->op(); op && !op->name().empty()) functions_[op->name()] = op;
  if (const std::string name = node.verb->name(); !name.empty())
    (node.inputs.empty() ? sources_ : expansions_)[name] = &node;
}

const Node& Named::source(const std::string& name) const {
  return *found(sources_, "data", name);
}
std::shared_ptr<const Op> Named::function(const std::string& name) const {
  return found(functions_, "function", name);
}
const Node& Named::expansion(const std::string& name) const {
  return *found(expansions_, "function", name);
}

Dataset parse_node(const Parsed& parsed) {
  const auto* const entry = std::ranges::find(kVerbs, parsed.word, &CatalogueEntry::word);
  if (entry != kVerbs.end()) return entry->parse(parsed);
  if (!parsed.inputs.empty()) return parse_map(parsed);
  return Dataset(std::make_shared<const Node>(parsed.named.source(parsed.text("name"))));
}

}  // namespace penstock
