// The verbs of Dataset that choose samples: filter, take_while, select, split.
// tested in src/feed/select_test.cc and src/graph/dataset_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/make_node.h"
#include "order/split.h"

namespace penstock {

std::shared_ptr<const Op> Dataset::sample_predicate(SampleFn fn, const std::string& name) {
  MapOptions options;
  options.name = name;
  options.spec = ElementSpec::single(Dtype::boolean);
  return make_sample_op(std::move(fn), options);
}

std::shared_ptr<const Op> Dataset::column_predicate(ColumnFn fn, const std::string& name) {
  if (fn.outputs != std::vector{Dtype::boolean})
    throw ConfigError(fmt::format("a predicate returns bool, this one is {}", fn.signature()));
  return make_column_op(std::move(fn), name);
}

namespace {

/// Throws where `op` cannot judge the elements of `input`.
void check_predicate(const Dataset& input, const Op& op, const char* word) {
  if (input.batched())
    throw ConfigError(fmt::format("{}: these elements are batches", word), {},
                      fmt::format("put {} before batch", word));
  const ElementSpec verdict = op.output(input.element_spec());
  if (verdict.known && verdict != ElementSpec::single(Dtype::boolean))
    throw ConfigError(fmt::format("{}: a typed predicate sees single values, the elements are {}",
                                  word, input.element_spec().text()),
                      {}, "take a const Sample& instead");
}

}  // namespace

Dataset add_filter(const Dataset& input, FilterVerb verb) {
  check_predicate(input, *verb.op, "filter");
  if (verb.mask && input.streamed())
    throw ConfigError("filter: a stream leaves out what does not pass; there is nothing to mask",
                      {}, "drop mask");
  Node node = after(input, verb);
  if (!verb.mask) {
    node.size = Cardinality::unknown();
    node.stream = true;
  }
  return make_node(std::move(node));
}

Dataset add_take_while(const Dataset& input, TakeWhileVerb verb) {
  check_predicate(input, *verb.op, "take_while");
  Node node = after(input, std::move(verb));
  node.size = Cardinality::unknown();
  node.stream = true;
  return make_node(std::move(node));
}

namespace {

/// The first node below whose order differs from pass to pass, if any.
const Node* reshuffles(const Node& node) {
  const auto* shuffle = node.as<ShuffleVerb>();
  if (shuffle && (shuffle->options.reshuffle_each_epoch || shuffle->options.seed.drawn))
    return &node;
  for (const NodePtr& input : node.inputs)
    if (const Node* found = reshuffles(*input)) return found;
  return nullptr;
}

/// The first node below that delivers samples more than once, if any.
const Node* copies_samples(const Node& node) {
  const auto* repeat = node.as<RepeatVerb>();
  if (repeat != nullptr && repeat->count.value_or(kEndless) > 1) return &node;
  if (const auto* batch = node.as<BatchVerb>()) {
    const Groups groups = groups_of(*batch, node.input().size, std::nullopt);
    if (groups.tail == TailRule::wrap && !groups.divides()) return &node;
  }
  for (const NodePtr& input : node.inputs)
    if (const Node* found = copies_samples(*input)) return found;
  return nullptr;
}

void refuse_empty_part(std::uint64_t all, std::uint64_t first, double fraction) {
  if (first > 0 && first < all) return;
  if (all < 2)
    throw ConfigError(
        fmt::format("split: {} sample{} cannot fill two parts", all, all == 1 ? "" : "s"), {},
        "split at least 2 samples");
  const double least = 0.5 / static_cast<double>(all);
  throw ConfigError(fmt::format("split: the {} part would be empty: {} of {} samples is {}",
                                first == 0 ? "first" : "second", fraction, all, first),
                    {},
                    fmt::format("use a fraction of at least {0:.3g} and below {1:.3g}, or split "
                                "more samples",
                                least, 1 - least));
}

}  // namespace

Dataset add_select(const Dataset& input, SelectVerb verb) {
  const char* const word = verb.op ? "select" : "split";
  if (verb.op) check_predicate(input, *verb.op, word);
  refuse_if_batched(input, word, fmt::format("put {} before batch", word));
  if (input.streamed())
    throw ConfigError(fmt::format("{}: a stream has no numbered samples to choose from", word), {},
                      "use filter()");
  if (input.cardinality().is_endless())
    throw ConfigError(fmt::format("{}: an endless dataset has no end to look at", word), {},
                      fmt::format("{} before repeat", word));
  if (const Node* found = reshuffles(*input.node()))
    throw ConfigError(fmt::format("{}: after {} other samples stand in each place each pass", word,
                                  describe_node(*found)),
                      {}, fmt::format("{} before shuffle", word));
  if (!verb.op)
    if (const Node* found = copies_samples(*input.node()))
      throw ConfigError(fmt::format("split: after {} copies of a sample could be in both parts",
                                    describe_node(*found)),
                        {}, "split first, then repeat each part");
  if (!verb.cell) verb.cell = std::make_shared<SelectCell>();
  Node node = after(input, verb);
  node.size = verb.chosen ? Cardinality::of(verb.chosen->count()) : Cardinality::undecided();
  if (!verb.op && input.cardinality().is_counted()) {
    const std::uint64_t all = input.cardinality().count();
    const std::uint64_t first = first_part_size(all, verb.fraction);
    refuse_empty_part(all, first, verb.fraction);
    node.size = Cardinality::of(verb.rest ? all - first : first);
  }
  return make_node(std::move(node));
}

Dataset Dataset::select_op(std::shared_ptr<const Op> op, const FilterOptions& options) const {
  SelectVerb verb;
  verb.op = std::move(op);
  verb.seed = options.seed;
  return add_select(*this, std::move(verb));
}

std::pair<Dataset, Dataset> Dataset::split(double fraction, std::uint64_t seed) const {
  if (!(fraction >= 0 && fraction <= 1))
    throw ConfigError(fmt::format("split: a fraction is between 0 and 1, got {}", fraction), {},
                      "split(0.8) puts 80 % of the samples into the first part");
  SelectVerb first;
  first.seed = seed;
  first.fraction = fraction;
  SelectVerb second = first;
  second.rest = true;
  return {add_select(*this, std::move(first)), add_select(*this, std::move(second))};
}

bool is_unresolved(const Node& root) {
  const auto* select = root.as<SelectVerb>();
  if (select != nullptr && !select->chosen) return true;
  return std::ranges::any_of(root.inputs,
                             [](const NodePtr& input) { return is_unresolved(*input); });
}

Dataset Dataset::filter_op(std::shared_ptr<const Op> op, const FilterOptions& options) const {
  return add_filter(*this, {std::move(op), options.seed, options.mask});
}

Dataset Dataset::take_while_op(std::shared_ptr<const Op> op, const FilterOptions& options) const {
  return add_take_while(*this, {std::move(op), options.seed});
}

}  // namespace penstock
