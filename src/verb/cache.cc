#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/cancelled.h"
#include "base/check.h"
#include "base/fault.h"
#include "base/mutex.h"
#include "plan/failures.h"
#include "sample/row_store.h"
#include "sample/rows.h"
#include "trace/activity.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"
#include "verb/select.h"

namespace penstock {
namespace {

class CacheStage final : public Stage {
 public:
  CacheStage(StagePtr input, std::shared_ptr<RowStore> store, std::uint64_t rounds)
      : Stage(input->spec(), input->ids()),
        input_(std::move(input)),
        store_(std::move(store)),
        rounds_(rounds) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const override {
    input_->identify({{0, 0}, ask.positions}, ids, context);
  }
  void collect_reads(const Ask& ask, const Context& context,
                     std::vector<PlannedRead>& reads) const override {
    std::vector<std::uint64_t> missing;
    for (const std::uint64_t position : ask.positions)
      if (!store_->has(position)) missing.push_back(position);
    input_->collect_reads({{0, 0}, missing}, context, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    // A separate block: the store needs occurrences even if the caller does not.
    const ScratchBlock kept(spec(), out.rows, context.scratch);
    auto missing = store_->get(ask.positions, kept.view());
    while (!missing.empty()) {
      {
        const RowStore::Claim claim(*store_, ask.positions, missing);
        if (!claim.rows().empty())
          if (auto done = fill(ask.positions, claim.rows(), kept.view(), out, context); !done)
            return done;
        missing = claim.others();
      }
      // Another thread computes them, possibly for another round; if it fails, this thread retries.
      for (const std::uint32_t row : missing)
        if (!store_->wait_for(ask.positions[row], [&] { return !context.cancelled(); }))
          return cancelled(row);
      missing = store_->get(ask.positions, missing, kept.view());
    }
    return hand_out(kept.view(), ask.turn, out);
  }

 private:
  /// Computes the rows that the store lacks, in the first turn, and stores them.
  Result<void> fill(std::span<const std::uint64_t> wanted, std::span<const std::uint32_t> missing,
                    const BlockView& kept, const BlockView& out, const Context& context) const {
    const std::size_t count = missing.size();
    std::uint64_t* const positions = context.scratch.array<std::uint64_t>(count);
    for (std::size_t i = 0; i < count; ++i) positions[i] = wanted[missing[i]];
    const Ask first_turn{{0, 0}, {positions, count}};
    Identity identity{context.scratch.array<std::uint64_t>(count),
                      context.scratch.array<std::uint64_t>(count)};
    RowFailures failures;
    identity.failed = context.scratch.array<std::uint8_t>(count);
    std::fill_n(identity.failed, count, kRowGood);
    if (out.identity.failures != nullptr) identity.failures = &failures;
    const ScratchBlock made(spec(), count, context.scratch, identity);
    if (auto done = input_->produce(first_turn, made.view(), context); !done) {
      done.failure().row = missing[std::min(done.failure().row, count - 1)];
      return done;
    }
    for (std::size_t i = 0; i < count; ++i) {
      copy_rows(made.view(), i, kept, missing[i], 1);
      if (identity.failed[i] != kRowGood) {
        // Failed rows are not stored. A caller without flags treats a masked row like any other.
        if (out.identity.failed != nullptr) out.identity.failed[missing[i]] = identity.failed[i];
        continue;
      }
      if (!PENSTOCK_OFF("cache.keep"))
        store_->put({positions + i, 1}, cut_rows(made.view(), i, 1, context.scratch));
    }
    for (Failure& failure : failures.take_rows(identity.failed)) {
      const std::uint8_t* const flag = out.identity.failed + missing[failure.row];
      out.identity.failures->add(std::move(failure), flag);
    }
    return {};
  }

  Result<void> hand_out(const BlockView& kept, Turn turn, const BlockView& out) const {
    if (spec().known) {
      copy_rows(kept, 0, out, 0, out.rows);
    } else {
      std::memcpy(out.identity.sample_id, kept.identity.sample_id,
                  out.rows * sizeof(std::uint64_t));
      for (std::size_t row = 0; row < out.rows; ++row) {
        const bool wanted = out.identity.failed == nullptr || out.identity.failed[row] == kRowGood;
        if (!wanted && kept.samples[row].leaves().empty()) continue;
        if (const auto wrong = write_row(out, row, kept.samples[row]))
          return at_sample(Failure{*wrong, {}, {}, nullptr, row}, ids(), out);
      }
    }
    if (out.identity.occurrence != nullptr)
      for (std::size_t row = 0; row < out.rows; ++row)
        out.identity.occurrence[row] =
            nested_round(turn.occurrence(), rounds_, kept.identity.occurrence[row]);
    return {};
  }

  StagePtr input_;
  std::shared_ptr<RowStore> store_;
  std::uint64_t rounds_;
};

/// The rows of a cache. A cache that is used in several places of a graph has separate rows for
/// each, since a sample has another id, and draws other numbers, in each place. Thread-safe.
class CacheStores {
 public:
  /// A place in a graph: the first id, and the number of sources and random ops before its end.
  using Place = std::array<std::uint64_t, 3>;
  explicit CacheStores(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  std::shared_ptr<RowStore> at(const Place& place) {
    Lock lock(mutex_);
    auto& store = stores_[place];
    if (!store) store = std::make_shared<RowStore>(bytes_max_);
    return store;
  }

 private:
  const std::uint64_t bytes_max_;
  Mutex mutex_;
  std::map<Place, std::shared_ptr<RowStore>> stores_ PENSTOCK_GUARDED_BY(mutex_);
};

/// Rounds of all repeats below, combined as in Turn; UINT64_MAX on overflow.
std::uint64_t rounds_below(const Node& node) {
  if (node.inputs.empty()) return 1;
  const Facts facts = node.facts();
  std::uint64_t below = rounds_below(node.input());
  if (__builtin_mul_overflow(below, facts.rounds, &below)) return UINT64_MAX;
  if (facts.appends)
    for (const NodePtr& input : node.inputs) below = std::max(below, rounds_below(*input));
  return below;
}

/// A random op whose numbers a cache above it would repeat, or null. Stops at the next cache, which
/// has warned already.
const Node* random_below(const Node& node) {
  return find_node(
      node,
      [](const Node& at) {
        // The predicate of a select runs only once anyway.
        return at.verb->op() && at.verb->op()->random() && at.as<Select>() == nullptr;
      },
      [](const Node& at) { return at.facts().caches; });
}

class Cache final : public Hint {
 public:
  explicit Cache(std::uint64_t bytes_max)
      : bytes_max_(bytes_max), stores_(std::make_shared<CacheStores>(bytes_max)) {}
  [[nodiscard]] Words words() const override { return {"cache", "cache()"}; }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.keeps_rows = true, .caches = true};
  }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    add_order_of_inputs(node, counting, lines);
    lines.push_back(words().line);
  }
  [[nodiscard]] Json arguments() const override { return {{"bytes_max", bytes_max_}}; }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    return cached(compiler.samples(node.input(), first_id), compiler, node, first_id);
  }
  /// Batches are stored as rows, which `Dataset::cache` allows for a single batch node only.
  [[nodiscard]] std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                std::uint64_t first_id) const override {
    std::vector<LeafProgram> chains = compiler.chains(node.input(), first_id);
    PENSTOCK_CHECK_EQ(chains.size(), 1U);
    chains.front().samples = cached(std::move(chains.front().samples), compiler, node, first_id);
    return chains;
  }

 private:
  [[nodiscard]] StagePtr cached(StagePtr input, Compiler& compiler, const Node& node,
                                std::uint64_t first_id) const {
    if (const Node* random = random_below(node.input());
        random && !PENSTOCK_OFF("warn.random_cache"))
      compiler.warn(
          fmt::format("cache() follows a random op ({}): every epoch repeats the random numbers of "
                      "the first; put cache() before it",
                      describe_node(*random)));
    const auto [sources, random_ops] = compiler.counts();
    // With a random seed each loader has other rows, so loaders cannot share them.
    auto store = wants_drawn_seed(node) ? std::make_shared<RowStore>(bytes_max_)
                                        : stores_->at({first_id, sources, random_ops});
    return std::make_unique<CacheStage>(std::move(input), std::move(store),
                                        rounds_below(node.input()));
  }

  const std::uint64_t bytes_max_;
  const std::shared_ptr<CacheStores> stores_;
};

}  // namespace

Dataset Dataset::cache(const CacheOptions& options) const {
  if (streamed())
    throw ConfigError(
        "cache: a stream cannot be cached", {},
        "cache() before the verb that makes it a stream, or use select() instead of filter()");
  if (cardinality().is_endless())
    throw ConfigError("cache: an endless dataset cannot be cached", {}, "cache before repeat");
  if (batched() && has_sequence(*node_))
    throw ConfigError("cache: the batches of a Sequence cannot be cached", {},
                      "cache them inside the Sequence");
  // Batches are stored as rows, which requires that nothing reorders the steps.
  for (const Node* node = node_.get(); batched() && !node->is_leaf(); node = &node->input())
    if (!node->facts().keeps_rows)
      throw ConfigError(
          fmt::format("cache: batches cannot be cached after {}", describe_node(*node)), {},
          "put cache() before it");
  return add_verb<Cache>(*this, options.bytes_max);
}

Dataset parse_cache(const Parsed& parsed) {
  return parsed.input().cache({parsed.count("bytes_max")});
}

}  // namespace penstock
