// select and split.
// tested in src/feed/select_test.cc
#include "verb/select.h"

#include <fmt/format.h>

#include "order/split.h"
#include "plan/moved_stage.h"
#include "verb/catalogue.h"
#include "verb/predicate.h"

namespace penstock {

namespace {

std::string chosen_text(const Chosen& chosen) {
  return fmt::format(" [{} of {}, #{}]", chosen.count(), chosen.size(),
                     chosen.digest().substr(0, 8));
}

}  // namespace

Words Select::words() const {
  const Selection& own = selection_;
  // Earlier versions wrote ", first part [8 of 10, #...]" and chose other samples.
  if (own.range) {
    std::string line = fmt::format("bucket({} to {}", own.range->low, own.range->high - 1);
    if (own.range->high == UINT64_MAX) line = fmt::format("bucket(from {}", own.range->low);
    if (!own.range->rule.field.empty()) line += fmt::format(", field={}", own.range->rule.field);
    line += ')';
    if (own.chosen) line += chosen_text(*own.chosen);
    return {"bucket", line};
  }
  if (!own.op)
    return {"split", fmt::format("split({}, seed={}): {}", own.fraction, own.seed,
                                 own.rest ? "the rest" : "first part")};
  std::string line = predicate_line("select", *own.op, own.seed);
  if (own.chosen) line += chosen_text(*own.chosen);
  return {"select", line};
}

Json Select::arguments() const {
  const Selection& own = selection_;
  if (own.range) refuse_measure(own.range->rule);
  if (own.range)
    return {{"field", own.range->rule.field},
            {"low", own.range->low},
            {"high", own.range->high},
            {"refused", own.range->refused}};
  if (!own.op) return {{"fraction", own.fraction}, {"seed", own.seed}, {"rest", own.rest}};
  return {{"name", required_name("select", own.op->name())}, {"seed", own.seed}};
}

Dataset Select::apply(const Node&, const std::vector<Dataset>& inputs) const {
  return add_select(inputs.front(), selection_);
}

StagePtr Select::samples(Compiler& compiler, const Node& node, std::uint64_t first_id) const {
  StagePtr input = compiler.samples(node.input(), first_id);
  // The predicate no longer runs, but later ops must keep their numbers.
  if (selection_.op) (void)compiler.place_of(*selection_.op, selection_.seed, "");
  return moved_stage(std::move(input), [chosen = selection_.chosen](const Ask& ask, Positions out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = (*chosen)[ask.positions[i]];
  });
}

Promise Select::promise(const Node& node, const Delivery& delivery) const {
  Promise promise = promise_of(node.input(), delivery);
  promise.all = false;
  return promise;
}

namespace {

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

void check_input(const Dataset& input, const Selection& selection) {
  const char* const word = selection.range ? "bucket_by_length" : selection.op ? "select" : "split";
  if (selection.op) check_predicate(input, *selection.op, word);
  refuse_if_batched(input, word, fmt::format("put {} before batch", word));
  if (input.streamed())
    throw ConfigError(fmt::format("{}: a stream has no numbered samples to choose from", word), {},
                      "use filter()");
  if (input.cardinality().is_endless())
    throw ConfigError(fmt::format("{}: an endless dataset cannot be searched to its end", word), {},
                      fmt::format("{} before repeat", word));
  const Node& root = *input.node();
  if (const Node* found = find_node(root, [](const Node& node) { return node.facts().reshuffles; }))
    throw ConfigError(fmt::format("{}: after {} the order differs from pass to pass", word,
                                  describe_node(*found)),
                      {}, fmt::format("{} before shuffle", word));
  if (selection.op || selection.range) return;
  if (const Node* found = find_node(root, [](const Node& node) { return node.facts().copies; }))
    throw ConfigError(fmt::format("split: after {} copies of a sample could be in both parts",
                                  describe_node(*found)),
                      {}, "split first, then repeat each part");
}

}  // namespace

Dataset add_select(const Dataset& input, Selection selection) {
  check_input(input, selection);
  if (!selection.cell) selection.cell = std::make_shared<SelectCell>();
  Node node = after(input, std::make_shared<const Select>(selection));
  node.size =
      selection.chosen ? Cardinality::of(selection.chosen->count()) : Cardinality::undecided();
  if (!selection.op && !selection.range && input.cardinality().is_counted()) {
    const std::uint64_t all = input.cardinality().count();
    const std::uint64_t first = first_part_size(all, selection.fraction);
    refuse_empty_part(all, first, selection.fraction);
    node.size = Cardinality::of(selection.rest ? all - first : first);
  }
  return make_node(std::move(node));
}

Dataset Dataset::select_op(std::shared_ptr<const Op> op, const FilterOptions& options) const {
  return add_select(*this, {.op = std::move(op), .seed = options.seed});
}

std::pair<Dataset, Dataset> Dataset::split(double fraction, std::uint64_t seed) const {
  if (!(fraction >= 0 && fraction <= 1))
    throw ConfigError(fmt::format("split: a fraction is between 0 and 1, got {}", fraction), {},
                      "split(0.8) puts 80 % of the samples into the first part");
  return {add_select(*this, {.seed = seed, .fraction = fraction}),
          add_select(*this, {.seed = seed, .fraction = fraction, .rest = true})};
}

Dataset parse_select(const Parsed& parsed) {
  return add_select(parsed.input(), {.op = parsed.function(), .seed = parsed.count("seed")});
}

Dataset parse_bucket(const Parsed& parsed) {
  LengthRange range{{parsed.text("field")},
                    parsed.count("low"),
                    parsed.count("high"),
                    parsed.count("refused"),
                    std::make_shared<LengthCell>()};
  return add_select(parsed.input(), {.range = std::make_shared<const LengthRange>(range)});
}

Dataset parse_split(const Parsed& parsed) {
  const auto parts =
      parsed.input().split(parsed.at("fraction").get<double>(), parsed.count("seed"));
  return parsed.flag("rest") ? parts.second : parts.first;
}

}  // namespace penstock
