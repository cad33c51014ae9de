// A plan as JSON: nodes by word and arguments. Arrays and user functions do not travel; they are
// found by name among what the receiving process has.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/json.h"
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
  Json operator()(const BatchVerb& verb) const {
    Json args{{"size", verb.size}};
    if (verb.tail) args["tail"] = *verb.tail == Tail::drop ? "drop" : "short";
    return args;
  }
  Json operator()(const ShuffleVerb& verb) const {
    return {{"seed", verb.options.seed.value},
            {"drawn", verb.options.seed.drawn},
            {"reshuffle", verb.options.reshuffle_each_epoch}};
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
  static Json count_json(const std::optional<std::uint64_t>& count) {
    return {{"count", count ? static_cast<std::int64_t>(*count) : -1}};
  }
};

Json node_json(const Node& node) {
  Json inputs = Json::array();
  for (const NodePtr& input : node.inputs) inputs.push_back(node_json(*input));
  return {
      {"word", verb_word(node)}, {"args", std::visit(Arguments{}, node.verb)}, {"inputs", inputs}};
}

/// Named sources and functions of some datasets.
struct Having {
  std::map<std::string, const Node*> sources;
  std::map<std::string, const Node*> functions;

  void collect(const Node& node) {
    for (const NodePtr& input : node.inputs) collect(*input);
    if (const auto* source = node.as<SourceVerb>(); source && !source->source->name().empty())
      sources[source->source->name()] = &node;
    if (const auto* map = node.as<MapVerb>(); map && !map->op->name().empty())
      functions[map->op->name()] = &node;
  }
};

[[noreturn]] void missing(const char* what, const std::string& name) {
  throw ConfigError(fmt::format("the plan needs the {} \"{}\", which is not here", what, name), {},
                    "pass a dataset that has it");
}

/// Puts the nodes together again through Dataset's own verbs, so that the same checks apply.
class Builder {
 public:
  explicit Builder(const Having& having) : having_(having) {}

  Dataset build(const Json& node) const {
    const auto word = node.at("word").get<std::string>();
    const Json& args = node.at("args");
    const Json& inputs = node.at("inputs");
    if (inputs.empty()) return source(word, args);
    if (word == "zip") {
      std::vector<Dataset> parts;
      for (const Json& input : inputs) parts.push_back(build(input));
      return Dataset::zip(parts, {args.at("strict").get<bool>()});
    }
    const Dataset input = build(inputs.at(0));
    if (word == "concatenate") return input.concatenate(build(inputs.at(1)));
    return verb(input, word, args);
  }

 private:
  [[nodiscard]] Dataset source(const std::string& word, const Json& args) const {
    if (word == "range")
      return Dataset::range(args.at("start").get<std::int64_t>(),
                            args.at("stop").get<std::int64_t>(),
                            args.at("step").get<std::int64_t>());
    const auto name = args.at("name").get<std::string>();
    const auto found = having_.sources.find(name);
    if (found == having_.sources.end()) missing("data", name);
    return Dataset(std::make_shared<const Node>(*found->second));
  }

  [[nodiscard]] Dataset map(const Dataset& input, const std::string& word, const Json& args) const {
    if (!args.contains("name")) return input.map(OpCall(make_catalogued_op(word, args)));
    const auto name = args.at("name").get<std::string>();
    const auto found = having_.functions.find(name);
    if (found == having_.functions.end()) missing("function", name);
    const auto& op = found->second->as<MapVerb>()->op;
    return add_map(input, op, args.at("seed").get<std::uint64_t>());
  }

  [[nodiscard]] Dataset verb(const Dataset& input, const std::string& word,
                             const Json& args) const {
    const auto count = [&](const char* key) { return args.at(key).get<std::int64_t>(); };
    if (word == "batch") {
      BatchOptions options;
      if (args.contains("tail")) options.tail = args["tail"] == "drop" ? Tail::drop : Tail::short_;
      return input.batch(count("size"), options);
    }
    if (word == "shuffle") {
      Seed seed(args.at("seed").get<std::uint64_t>());
      seed.drawn = args.at("drawn").get<bool>();
      return input.shuffle({seed, args.at("reshuffle").get<bool>()});
    }
    if (word == "repeat") return input.repeat(count("count"));
    if (word == "take") return input.take(count("count"));
    if (word == "skip") return input.skip(count("count"));
    if (word == "shard") return input.shard(count("count"), count("index"));
    if (word == "unbatch") return input.unbatch();
    if (word == "enumerate") return input.enumerate();
    if (word == "cache") return input.cache({args.at("bytes_max").get<std::uint64_t>()});
    if (word == "prefetch")
      return input.prefetch(
          {args.at("steps").get<std::uint64_t>(), args.at("bytes").get<std::uint64_t>()});
    if (word == "with_options") {
      Options options;
      options.name = args.at("name").get<std::string>();
      return input.with_options(options);
    }
    return map(input, word, args);
  }

  const Having& having_;
};

}  // namespace

std::string Plan::serialise() const {
  const PlanOptions& options = data_->options;
  Json fields{{"penstock", "plan"},
              {"format", kFormat},
              {"dataset", node_json(*data_->dataset.node())},
              {"shares", {options.shares.total, options.shares.first, options.shares.count}},
              {"seed", data_->drawn_seed},
              {"order", digests().order}};
  if (options.tail) fields["tail"] = *options.tail == Tail::drop ? "drop" : "short";
  return fields.dump();
}

Plan Plan::parse(const std::string& text, const std::vector<Dataset>& having) {
  const auto fields = parse_json(text);
  if (!fields || !fields->is_object() || fields->value("penstock", "") != "plan")
    throw ConfigError("this is not a plan of penstock: it is cut short, or another text");
  if (fields->value("format", 0) != kFormat)
    throw ConfigError(fmt::format("the plan has format {}, this version knows {}",
                                  fields->value("format", 0), kFormat),
                      {}, "use the same version of penstock on both sides");
  Having have;
  for (const Dataset& dataset : having) have.collect(*dataset.node());
  try {
    const Dataset dataset = Builder(have).build(fields->at("dataset"));
    PlanOptions options;
    const auto shares = fields->at("shares").get<std::vector<std::uint32_t>>();
    options.shares = {shares.at(0), shares.at(1), shares.at(2)};
    options.drawn_seed = fields->at("seed").get<std::uint64_t>();
    if (fields->contains("tail"))
      options.tail = (*fields)["tail"] == "drop" ? Tail::drop : Tail::short_;
    Plan plan(dataset, options);
    if (plan.digests().order != fields->at("order").get<std::string>())
      throw ConfigError("the data found under the plan's names is not the data it was made for");
    return plan;
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("the plan's text is garbled: {}", error.what()));
  } catch (const std::out_of_range&) {
    throw ConfigError("the plan's text is garbled: too few shares");
  }
}

}  // namespace penstock
