// A plan as JSON: nodes by word and arguments. Arrays and user functions are not serialized; the
// receiving process finds them by name among its own.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/digest.h"
#include "base/json.h"
#include "graph/tail.h"
#include "plan/plan_data.h"
#include "verb/catalogue.h"

namespace penstock {
namespace {

constexpr int kFormat = 1;

/// The nodes of a graph as a flat list, inputs first. A node that is used twice is listed once.
class NodeList {
 public:
  Json nodes = Json::array();

  /// Adds `node` and everything below it; returns its index.
  std::size_t add(const Node& node) {
    if (const auto found = indices_.find(&node); found != indices_.end()) return found->second;
    Json inputs = Json::array();
    for (const NodePtr& input : node.inputs) inputs.push_back(add(*input));
    nodes.push_back(
        {{"word", verb_word(node)}, {"args", node.verb->arguments()}, {"inputs", inputs}});
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

/// Builds the nodes with Dataset's own verbs, so that the same checks apply; returns the last one.
Dataset build(const Json& nodes, const Named& named) {
  std::vector<Dataset> built;
  for (const Json& node : nodes) {
    std::vector<Dataset> inputs;
    for (const Json& input : node.at("inputs"))
      inputs.push_back(built.at(whole_number<std::size_t>(input)));
    const std::string word = node.at("word");
    built.push_back(parse_node({word, node.at("args"), inputs, named}));
  }
  return built.at(nodes.size() - 1);
}

}  // namespace

std::string Plan::serialize() const {
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
    throw ConfigError("a name in the plan is not UTF-8 text and cannot be serialized");
  }
}

namespace {

/// Parses the text of a plan; throws ConfigError if it is incomplete or has an unknown format.
Json fields_of(const std::string& text) {
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object() || !parsed->contains("penstock") ||
      parsed->at("penstock") != "plan")
    throw ConfigError("this is not a penstock plan: it is truncated, or another text");
  Json fields = *parsed;
  if (!fields.contains("format") || fields["format"] != kFormat)
    throw ConfigError(
        fmt::format("the plan has format {}, this version knows {}",
                    fields.contains("format") ? fields["format"].dump() : "none", kFormat),
        {}, "use the same version of penstock on both sides");
  const Json check = fields.contains("check") ? fields["check"] : Json();
  fields.erase("check");
  if (check != check_of(fields))
    throw ConfigError("the plan's text is garbled: its content does not match its checksum");
  return fields;
}

}  // namespace

Plan Plan::parse(const std::string& text, const std::vector<Dataset>& having) {
  Named named;
  for (const Dataset& dataset : having) named.collect(*dataset.node());
  try {
    const Json fields = fields_of(text);
    const Dataset dataset = build(fields.at("nodes"), named).resolve();
    PlanOptions options;
    const auto shares = whole_numbers<std::uint32_t>(fields.at("shares"));
    options.shares = {shares.at(0), shares.at(1), shares.at(2)};
    options.drawn_seed = whole_number<std::uint64_t>(fields.at("seed"));
    if (fields.contains("tail")) options.tail = tail_parsed(fields.at("tail").get<std::string>());
    Plan plan(dataset, options);
    if (plan.digests().order != fields.at("order").get<std::string>())
      throw ConfigError("the data found under the plan's names differs from the data of the plan");
    return plan;
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("the plan's text is garbled: {}", error.what()));
  } catch (const std::out_of_range&) {
    throw ConfigError("the plan's text is garbled: something is missing");
  }
}

}  // namespace penstock
