// Nodes in words, and the digests made of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest.h"
#include "graph/node.h"
#include "graph/tail.h"

namespace penstock {
namespace {

std::string number_or(const std::optional<std::uint64_t>& number, const char* otherwise) {
  return number ? fmt::format("{}", *number) : otherwise;
}

/// Earlier versions wrote ", first part [8 of 10, #...]" and chose other samples.
std::string split_line(const SelectVerb& verb) {
  return fmt::format("split({}, seed={}): {}", verb.fraction, verb.seed,
                     verb.rest ? "the rest" : "first part");
}

std::string tail_text(const BatchVerb& batch) {
  if (!batch.tail) return "";
  return fmt::format(", tail={}", tail_name(*batch.tail));
}

/// One overload per verb: its word and its line.
struct Words {
  std::string word;
  std::string line;
};
struct Wording {
  Words operator()(const SourceVerb& verb) const {
    return {verb.source->word(), verb.source->describe()};
  }
  Words operator()(const SequenceVerb& verb) const {
    return {"from_sequence", verb.source->title()};
  }
  Words operator()(const MapVerb& verb) const {
    std::string line = verb.op->describe();
    // The line of a catalogued op names its own seed.
    if (verb.op->random() && line.find("seed=") == std::string::npos)
      line += fmt::format(", seed={}", verb.seed);
    if (verb.whole) line += ", on whole batches";
    return {verb.op->word(), line};
  }
  Words operator()(const GeneratorVerb& verb) const {
    return {"from_generator",
            fmt::format("from_generator({}{})",
                        verb.name.empty() ? "" : fmt::format("\"{}\", ", verb.name),
                        verb.fn.has_cursor ? "with cursor" : "replayed from its start")};
  }
  Words operator()(const FilterVerb& verb) const {
    return {"filter", predicate("filter", *verb.op, verb.seed) + (verb.mask ? ", mask" : "")};
  }
  Words operator()(const TakeWhileVerb& verb) const {
    return {"take_while", predicate("take_while", *verb.op, verb.seed)};
  }
  Words operator()(const SelectVerb& verb) const {
    if (!verb.op) return {"split", split_line(verb)};
    std::string line = predicate("select", *verb.op, verb.seed);
    if (verb.chosen)
      line += fmt::format(" [{} of {}, #{}]", verb.chosen->count(), verb.chosen->size(),
                          verb.chosen->digest().substr(0, 8));
    return {"select", line};
  }
  Words operator()(const ExpandVerb& verb) const {
    const std::string name = verb.name.empty() ? "" : fmt::format("\"{}\"", verb.name);
    if (verb.word == "flat_map") return {"flat_map", fmt::format("flat_map({})", name)};
    return {"interleave", fmt::format("interleave({}{}cycle={}, block={})", name,
                                      name.empty() ? "" : ", ", verb.cycle, verb.block)};
  }
  Words operator()(const RowsVerb&) const { return {"unbatch", "unbatch() of samples"}; }
  Words operator()(const BatchVerb& verb) const {
    return {"batch", fmt::format("batch({}{})", verb.size, tail_text(verb))};
  }
  Words operator()(const UnbatchVerb&) const { return {"unbatch", "unbatch()"}; }
  Words operator()(const ShuffleVerb& verb) const {
    const Seed& seed = verb.options.seed;
    return {
        "shuffle",
        fmt::format("shuffle(seed={}{}{})", seed.drawn ? "random" : fmt::format("{}", seed.value),
                    verb.options.window ? fmt::format(", window={}", *verb.options.window) : "",
                    verb.options.reshuffle_each_epoch ? "" : ", same every epoch")};
  }
  Words operator()(const RepeatVerb& verb) const {
    return {"repeat", fmt::format("repeat({})", number_or(verb.count, "for ever"))};
  }
  Words operator()(const TakeVerb& verb) const {
    return {"take", fmt::format("take({})", number_or(verb.count, "all"))};
  }
  Words operator()(const SkipVerb& verb) const {
    return {"skip", fmt::format("skip({})", number_or(verb.count, "all"))};
  }
  Words operator()(const ShardVerb& verb) const {
    return {"shard", fmt::format("shard({}, {})", verb.count, verb.index)};
  }
  Words operator()(const ConcatenateVerb&) const { return {"concatenate", "concatenate()"}; }
  Words operator()(const ZipVerb& verb) const {
    return {"zip", verb.strict ? "zip(strict)" : "zip()"};
  }
  Words operator()(const EnumerateVerb&) const { return {"enumerate", "enumerate()"}; }
  Words operator()(const CacheVerb&) const { return {"cache", "cache()"}; }
  Words operator()(const PrefetchVerb& verb) const {
    return {"prefetch",
            fmt::format("prefetch(steps={}, bytes={})", verb.options.steps, verb.options.bytes)};
  }
  Words operator()(const OptionsVerb& verb) const {
    const Options& options = verb.options;
    std::vector<std::string> given;
    if (!options.name.empty()) given.push_back(fmt::format("name=\"{}\"", options.name));
    if (options.threads) given.push_back(fmt::format("threads={}", *options.threads));
    if (options.lookahead_bytes)
      given.push_back(fmt::format("lookahead_bytes={}", *options.lookahead_bytes));
    return {"with_options", fmt::format("with_options({})", fmt::join(given, ", "))};
  }

  /// The op's own line says "map".
  static std::string predicate(const char* word, const Op& op, std::uint64_t seed) {
    std::string line = word + op.describe().substr(std::string("map").size());
    if (op.random()) line += fmt::format(", seed={}", seed);
    return line;
  }
};

bool masks(const Node& node) {
  const auto* filter = node.as<FilterVerb>();
  return filter != nullptr && filter->mask;
}

bool changes_order(const Node& node, bool batch_counts) {
  if (masks(node)) return false;
  if (node.as<MapVerb>() || node.as<PrefetchVerb>() || node.as<OptionsVerb>() ||
      node.as<EnumerateVerb>())
    return false;
  return batch_counts || node.as<BatchVerb>() == nullptr;
}

/// Where batches count: `batch_counts`, with the tail that fills in where none is named. Below an
/// unbatch the batch size says which samples a drop leaves out, and no tail fills in.
struct Counting {
  bool batch_counts = false;
  std::optional<Tail> tail;
};

void collect_order(const Node& node, Counting counting, std::vector<std::string>& parts) {
  const auto [batch_counts, tail] = counting;
  const Counting below = node.as<UnbatchVerb>() ? Counting{true, std::nullopt} : counting;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    collect_order(*node.inputs[i], below, parts);
    // One line for each side that was added: the same as when each was a node of its own.
    if (i > 1 && node.as<ConcatenateVerb>()) parts.push_back(describe_node(node));
  }
  if (!changes_order(node, batch_counts)) return;
  if (const auto* source = node.as<SourceVerb>()) {
    Digest identity;
    source->source->identify(identity);
    parts.push_back(fmt::format("{} #{}", source->source->word(), identity.text().substr(0, 8)));
  } else if (const auto* batch = node.as<BatchVerb>()) {
    BatchVerb filled = *batch;
    if (!filled.tail) filled.tail = tail;
    if (filled.tail && !changes_steps(*filled.tail)) filled.tail.reset();
    parts.push_back(Wording{}(filled).line);
  } else if (node.as<ZipVerb>()) {
    parts.push_back(fmt::format("{} of {}", describe_node(node), node.inputs.size()));
  } else {
    parts.push_back(describe_node(node));
  }
}

void collect_values(const Node& node, Digest& digest) {
  for (const NodePtr& input : node.inputs) collect_values(*input, digest);
  const bool changes =
      node.as<MapVerb>() || node.as<EnumerateVerb>() || node.as<ZipVerb>() || masks(node);
  if (changes) digest.add(describe_node(node));
  if (changes || node.as<SourceVerb>() || node.as<GeneratorVerb>() || node.as<SequenceVerb>())
    digest.add(node.spec.text());
  if (const auto* source = node.as<SourceVerb>()) source->source->identify_values(digest);
}

void list(const Node& node, int depth, std::string& text) {
  for (const NodePtr& input : node.inputs)
    list(*input, depth + (node.inputs.size() > 1 ? 1 : 0), text);
  const std::string unit = node.batched ? "steps" : "samples";
  const std::string size = node.stream              ? fmt::format("a stream of {}", unit)
                           : node.size.is_counted() ? fmt::format("{} {}", node.size.count(), unit)
                                                    : node.size.text();
  text += fmt::format("{:{}}{}  [{} of {}]\n", "", depth * 2, describe_node(node), size,
                      node.spec.text());
}

}  // namespace

std::string verb_word(const Node& node) {
  return std::visit(Wording{}, node.verb).word;
}
std::string describe_node(const Node& node) {
  return std::visit(Wording{}, node.verb).line;
}

bool batch_size_is_free(const Node& root) {
  if (!root.batched) return false;
  if (root.as<BatchVerb>()) return true;
  if (root.as<SequenceVerb>()) return false;
  const bool counts_steps = root.as<TakeVerb>() || root.as<SkipVerb>() || root.as<ShardVerb>() ||
                            root.as<ShuffleVerb>() || root.as<ConcatenateVerb>();
  return !counts_steps && batch_size_is_free(root.input());
}

std::vector<std::string> order_parts(const Node& root, std::optional<Tail> tail) {
  std::vector<std::string> parts;
  collect_order(root, {root.batched && !batch_size_is_free(root), tail}, parts);
  return parts;
}

Digests digests_of(const Node& root, std::optional<Tail> tail) {
  Digest order;
  for (const std::string& part : order_parts(root, tail)) order.add(part);
  Digest values;
  collect_values(root, values);
  values.add(PENSTOCK_VERSION);
  return {order.text(), values.text()};
}

std::string Dataset::describe() const {
  std::string text;
  list(*node_, 0, text);
  return text;
}

}  // namespace penstock
