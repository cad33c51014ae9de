// A plan as JSON: nodes by word and arguments. Arrays and user functions do not travel; they are
// found by name among what the receiving process has.
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/json.h"
#include "graph/tail.h"
#include "plan/plan_data.h"

namespace penstock {
namespace {

constexpr int kFormat = 1;

/// The arguments of each verb.
struct Arguments {
  Json operator()(const SourceVerb& verb) const {
    Json args = verb.source->arguments();
    if (args.empty()) {
      if (verb.source->name().empty())
        throw ConfigError(
            fmt::format("{}: data in memory travels by name", verb.source->describe()), {},
            "give it one: {.name = ...}");
      args = {{"name", verb.source->name()}};
    }
    return args;
  }
  Json operator()(const MapVerb& verb) const {
    Json args = verb.op->arguments();
    if (args.empty()) {
      if (verb.op->name().empty())
        throw ConfigError(fmt::format("{}: a function travels by name", verb.op->describe()), {},
                          "give it one: {.name = ...}");
      args = {{"name", verb.op->name()}, {"seed", verb.seed}};
    }
    return args;
  }
  Json operator()(const SequenceVerb& verb) const {
    return {{"name", named("from_sequence", verb.source->options().name)}};
  }
  Json operator()(const GeneratorVerb& verb) const {
    return {{"name", named("from_generator", verb.name)}};
  }
  Json operator()(const FilterVerb& verb) const {
    return {{"name", named("filter", verb.op->name())}, {"seed", verb.seed}, {"mask", verb.mask}};
  }
  Json operator()(const TakeWhileVerb& verb) const {
    return {{"name", named("take_while", verb.op->name())}, {"seed", verb.seed}};
  }
  Json operator()(const SelectVerb& verb) const {
    if (!verb.op) return {{"fraction", verb.fraction}, {"seed", verb.seed}, {"rest", verb.rest}};
    return {{"name", named("select", verb.op->name())}, {"seed", verb.seed}};
  }
  Json operator()(const ExpandVerb& verb) const { return {{"name", named(verb.word, verb.name)}}; }
  Json operator()(const BatchVerb& verb) const {
    Json args{{"size", verb.size}};
    if (verb.tail) args["tail"] = tail_name(*verb.tail);
    return args;
  }
  Json operator()(const ShuffleVerb& verb) const {
    return {{"seed", verb.options.seed.value},
            {"drawn", verb.options.seed.drawn},
            {"reshuffle", verb.options.reshuffle_each_epoch},
            {"window", verb.options.window.value_or(0)}};
  }
  Json operator()(const RepeatVerb& verb) const { return count_json(verb.count); }
  Json operator()(const TakeVerb& verb) const { return count_json(verb.count); }
  Json operator()(const SkipVerb& verb) const { return count_json(verb.count); }
  Json operator()(const ShardVerb& verb) const {
    return {{"count", verb.count}, {"index", verb.index}};
  }
  Json operator()(const ZipVerb& verb) const { return {{"strict", verb.strict}}; }
  Json operator()(const CacheVerb& verb) const { return {{"bytes_max", verb.bytes_max}}; }
  Json operator()(const PrefetchVerb& verb) const {
    return {{"steps", verb.options.steps}, {"bytes", verb.options.bytes}};
  }
  Json operator()(const OptionsVerb& verb) const { return {{"name", verb.options.name}}; }
  template <typename Other>
  Json operator()(const Other&) const {
    return Json::object();
  }
  static std::string named(const std::string& word, const std::string& name) {
    if (name.empty())
      throw ConfigError(fmt::format("{}: a function travels by name", word), {},
                        "give it one: {.name = ...}");
    return name;
  }
  static Json count_json(const std::optional<std::uint64_t>& count) {
    return {{"count", count ? static_cast<std::int64_t>(*count) : -1}};
  }
};

/// The nodes of a graph as a flat list, inputs first; one that is used twice is there once.
class NodeList {
 public:
  Json nodes = Json::array();

  /// Adds `node` and what is below it, and returns its index.
  std::size_t add(const Node& node) {
    if (const auto found = indices_.find(&node); found != indices_.end()) return found->second;
    Json inputs = Json::array();
    for (const NodePtr& input : node.inputs) inputs.push_back(add(*input));
    nodes.push_back({{"word", verb_word(node)},
                     {"args", std::visit(Arguments{}, node.verb)},
                     {"inputs", inputs}});
    return indices_[&node] = nodes.size() - 1;
  }

 private:
  std::map<const Node*, std::size_t> indices_;
};

std::string check_of(const Json& fields) {
  Digest digest;
  digest.add(fields.dump());
  return digest.text();
}

/// Named sources and functions of some datasets.
struct Having {
  std::map<std::string, const Node*> sources;
  std::map<std::string, std::shared_ptr<const Op>> functions;
  std::map<std::string, const Node*> expansions;
  std::set<const Node*> seen = {};

  void collect(const Node& node) {
    if (!seen.insert(&node).second) return;
    for (const NodePtr& input : node.inputs) collect(*input);
    if (const auto* source = node.as<SourceVerb>(); source && !source->source->name().empty())
      sources[source->source->name()] = &node;
    if (const auto* generator = node.as<GeneratorVerb>(); generator && !generator->name.empty())
      sources[generator->name] = &node;
    if (const auto* sequence = node.as<SequenceVerb>();
        sequence && !sequence->source->options().name.empty())
      sources[sequence->source->options().name] = &node;
    if (const auto* expand = node.as<ExpandVerb>(); expand && !expand->name.empty())
      expansions[expand->name] = &node;
    if (const auto* map = node.as<MapVerb>()) collect(map->op);
    if (const auto* filter = node.as<FilterVerb>()) collect(filter->op);
    if (const auto* until = node.as<TakeWhileVerb>()) collect(until->op);
    if (const auto* select = node.as<SelectVerb>(); select && select->op) collect(select->op);
  }
  void collect(const std::shared_ptr<const Op>& op) {
    if (!op->name().empty()) functions[op->name()] = op;
  }
};

[[noreturn]] void missing(const char* what, const std::string& name) {
  throw ConfigError(fmt::format("the plan needs the {} \"{}\", which is not here", what, name), {},
                    "pass a dataset that has it");
}

Tail tail_in(const Json& fields) {
  const auto name = fields.at("tail").get<std::string>();
  const auto tail = tail_named(name);
  if (!tail)
    throw ConfigError(fmt::format("the plan has the tail policy \"{}\", which is not known", name),
                      {}, "use the same version of penstock on both sides");
  return *tail;
}

/// Puts the nodes together again through Dataset's own verbs, so that the same checks apply.
class Builder {
 public:
  explicit Builder(const Having& having) : having_(having) {}

  /// The last of the nodes.
  [[nodiscard]] Dataset build(const Json& nodes) const {
    std::vector<Dataset> built;
    for (const Json& node : nodes) {
      std::vector<Dataset> inputs;
      for (const Json& input : node.at("inputs"))
        inputs.push_back(built.at(whole_number<std::size_t>(input)));
      built.push_back(one(node.at("word"), node.at("args"), inputs));
    }
    return built.at(nodes.size() - 1);
  }

 private:
  [[nodiscard]] Dataset one(const std::string& word, const Json& args,
                            const std::vector<Dataset>& inputs) const {
    if (inputs.empty()) return source(word, args);
    if (word == "zip") return Dataset::zip(inputs, {args.at("strict").get<bool>()});
    if (word == "concatenate") {
      Dataset joined = inputs[0].concatenate(inputs.at(1));
      for (std::size_t i = 2; i < inputs.size(); ++i) joined = joined.concatenate(inputs[i]);
      return joined;
    }
    return verb(inputs[0], word, args);
  }

  [[nodiscard]] Dataset source(const std::string& word, const Json& args) const {
    if (word == "range")
      return Dataset::range(whole_number<std::int64_t>(args.at("start")),
                            whole_number<std::int64_t>(args.at("stop")),
                            whole_number<std::int64_t>(args.at("step")));
    if (word == "image_folder") return image_folder(args);
    if (word == "from_paths")
      return Dataset::from_paths(args.at("paths").get<std::vector<std::string>>(),
                                 whole_numbers<std::int64_t>(args.at("labels")));
    if (word == "list_files")
      return Dataset::list_files(args.at("pattern").get<std::string>(),
                                 {args.at("hidden").get<bool>()});
    const auto name = args.at("name").get<std::string>();
    const auto found = having_.sources.find(name);
    if (found == having_.sources.end()) missing("data", name);
    return Dataset(std::make_shared<const Node>(*found->second));
  }

  /// Lists the folder again: the order digest of the plan says whether it is the same.
  [[nodiscard]] static Dataset image_folder(const Json& args) {
    FolderOptions options;
    options.extensions = args.at("extensions").get<std::vector<std::string>>();
    options.follow_links =
        static_cast<FollowLinks>(whole_number<unsigned>(args.at("follow_links")) % 3);
    options.labels = args.at("labels").get<bool>();
    options.with_path = args.at("with_path").get<bool>();
    if (args.contains("bytes_max"))
      options.bytes_max = whole_number<std::uint64_t>(args.at("bytes_max"));
    return Dataset::image_folder(args.at("root").get<std::string>(), options);
  }

  [[nodiscard]] Dataset map(const Dataset& input, const std::string& word, const Json& args) const {
    if (!args.contains("name")) return input.map(OpCall(make_catalogued_op(word, args)));
    return add_map(input, function(args), whole_number<std::uint64_t>(args.at("seed")));
  }

  [[nodiscard]] std::shared_ptr<const Op> function(const Json& args) const {
    const auto name = args.at("name").get<std::string>();
    const auto found = having_.functions.find(name);
    if (found == having_.functions.end()) missing("function", name);
    return found->second;
  }

  [[nodiscard]] Dataset expand(const Dataset& input, const Json& args) const {
    const auto name = args.at("name").get<std::string>();
    const auto found = having_.expansions.find(name);
    if (found == having_.expansions.end()) missing("function", name);
    return add_expand(input, *found->second->as<ExpandVerb>(), found->second->spec);
  }

  [[nodiscard]] Dataset verb(const Dataset& input, const std::string& word,
                             const Json& args) const {
    const auto count = [&](const char* key) { return whole_number<std::int64_t>(args.at(key)); };
    if (word == "batch") {
      BatchOptions options;
      if (args.contains("tail")) options.tail = tail_in(args);
      return input.batch(count("size"), options);
    }
    if (word == "shuffle") {
      Seed seed(whole_number<std::uint64_t>(args.at("seed")));
      seed.drawn = args.at("drawn").get<bool>();
      ShuffleOptions options{seed, args.at("reshuffle").get<bool>()};
      if (const auto window = whole_number<std::uint64_t>(args.at("window")); window > 0)
        options.window = window;
      return input.shuffle(options);
    }
    if (word == "repeat") return input.repeat(count("count"));
    if (word == "take") return input.take(count("count"));
    if (word == "skip") return input.skip(count("count"));
    if (word == "shard") return input.shard(count("count"), count("index"));
    if (word == "unbatch") return input.unbatch();
    if (word == "enumerate") return input.enumerate();
    if (word == "cache") return input.cache({whole_number<std::uint64_t>(args.at("bytes_max"))});
    if (word == "prefetch")
      return input.prefetch({whole_number<std::uint64_t>(args.at("steps")),
                             whole_number<std::uint64_t>(args.at("bytes"))});
    if (word == "with_options") {
      Options options;
      options.name = args.at("name").get<std::string>();
      return input.with_options(options);
    }
    const auto seed = [&] { return whole_number<std::uint64_t>(args.at("seed")); };
    if (word == "filter")
      return add_filter(input, {function(args), seed(), args.at("mask").get<bool>()});
    if (word == "take_while") return add_take_while(input, {function(args), seed()});
    if (word == "select") {
      SelectVerb select;
      select.op = function(args);
      select.seed = seed();
      return add_select(input, std::move(select));
    }
    if (word == "split") {
      const auto parts = input.split(args.at("fraction").get<double>(), seed());
      return args.at("rest").get<bool>() ? parts.second : parts.first;
    }
    if (word == "flat_map" || word == "interleave") return expand(input, args);
    return map(input, word, args);
  }

  const Having& having_;
};

}  // namespace

std::string Plan::serialise() const {
  const PlanOptions& options = data_->options;
  NodeList list;
  list.add(*data_->dataset.node());
  Json fields{{"penstock", "plan"},
              {"format", kFormat},
              {"nodes", std::move(list.nodes)},
              {"shares", {options.shares.total, options.shares.first, options.shares.count}},
              {"seed", data_->drawn_seed},
              {"order", digests().order}};
  if (options.tail) fields["tail"] = tail_name(*options.tail);
  try {
    fields["check"] = check_of(fields);
    return fields.dump();
  } catch (const Json::exception&) {
    throw ConfigError("a name in the plan is not UTF-8 text and cannot travel");
  }
}

namespace {

/// The fields of a plan's text, whole and of a format we know.
Json fields_of(const std::string& text) {
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object() || !parsed->contains("penstock") ||
      parsed->at("penstock") != "plan")
    throw ConfigError("this is not a plan of penstock: it is cut short, or another text");
  Json fields = *parsed;
  if (!fields.contains("format") || fields["format"] != kFormat)
    throw ConfigError(
        fmt::format("the plan has format {}, this version knows {}",
                    fields.contains("format") ? fields["format"].dump() : "none", kFormat),
        {}, "use the same version of penstock on both sides");
  const Json check = fields.contains("check") ? fields["check"] : Json();
  fields.erase("check");
  if (check != check_of(fields))
    throw ConfigError("the plan's text is garbled: its content does not fit its check sum");
  return fields;
}

}  // namespace

Plan Plan::parse(const std::string& text, const std::vector<Dataset>& having) {
  Having have;
  for (const Dataset& dataset : having) have.collect(*dataset.node());
  try {
    const Json fields = fields_of(text);
    const Dataset dataset = Builder(have).build(fields.at("nodes")).resolve();
    PlanOptions options;
    const auto shares = whole_numbers<std::uint32_t>(fields.at("shares"));
    options.shares = {shares.at(0), shares.at(1), shares.at(2)};
    options.drawn_seed = whole_number<std::uint64_t>(fields.at("seed"));
    if (fields.contains("tail")) options.tail = tail_in(fields);
    Plan plan(dataset, options);
    if (plan.digests().order != fields.at("order").get<std::string>())
      throw ConfigError("the data found under the plan's names is not the data it was made for");
    return plan;
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("the plan's text is garbled: {}", error.what()));
  } catch (const std::out_of_range&) {
    throw ConfigError("the plan's text is garbled: something is missing");
  }
}

}  // namespace penstock
