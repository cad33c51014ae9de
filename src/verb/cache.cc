// cache and snapshot: rows of the first pass, in memory or in a folder.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/mutex.h"
#include "base/printable.h"
#include "store/disk_rows.h"
#include "store/memory_rows.h"
#include "store/spilled_rows.h"
#include "verb/cache_stage.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"
#include "verb/needs_rows.h"
#include "verb/select.h"
#include "verb/source.h"

namespace penstock {
namespace {

/// A place in a graph: the first id, and the number of sources and random ops before its end.
using CachePlaceKey = std::array<std::uint64_t, 3>;

/// The rows of a cache. A cache that is used in several places of a graph has separate rows for
/// each, since a sample has another id, and draws other numbers, in each place. Thread-safe.
class CacheStores {
 public:
  /// Calls `make` for the first user of the place.
  template <typename Make>
  std::shared_ptr<RowStore> at(const CachePlaceKey& place, Make make) {
    Lock lock(mutex_);
    auto& store = stores_[place];
    if (!store) store = make();
    return store;
  }
  /// What the stores have, if there are any.
  std::string text() {
    Lock lock(mutex_);
    std::string text;
    for (const auto& [place, store] : stores_) text += (text.empty() ? "" : "; ") + store->text();
    return text;
  }

 private:
  Mutex mutex_;
  std::map<CachePlaceKey, std::shared_ptr<RowStore>> stores_ PENSTOCK_GUARDED_BY(mutex_);
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

bool draws_numbers(const Node& at) {
  // The predicate of a select runs only once anyway.
  return at.verb->op() && at.verb->op()->random() && at.as<Select>() == nullptr;
}

/// A random op whose numbers a cache above it would repeat, or null. Stops at the next cache, which
/// has warned already.
const Node* random_below(const Node& node) {
  return find_node(node, draws_numbers, [](const Node& at) { return at.facts().caches; });
}

std::uint64_t count_of(const Node& node, bool (*matches)(const Node&)) {
  std::uint64_t count = matches(node) ? 1 : 0;
  for (const NodePtr& input : node.inputs) count += count_of(*input, matches);
  return count;
}

struct CacheSettings {
  CacheOptions options;
  std::string moved_before = {};  // the random op, if place="auto" moved the cache
};

class Cache final : public Hint, public NeedsRows {
 public:
  explicit Cache(CacheSettings settings)
      : Cache(std::move(settings), std::make_shared<CacheStores>(), std::make_shared<RowsCell>(),
              nullptr) {}
  Cache(CacheSettings settings, std::shared_ptr<CacheStores> stores, std::shared_ptr<RowsCell> cell,
        std::shared_ptr<const StoredRows> stored)
      : settings_(std::move(settings)),
        stores_(std::move(stores)),
        cell_(std::move(cell)),
        stored_(std::move(stored)) {}

  [[nodiscard]] Words words() const override { return {"cache", line()}; }
  [[nodiscard]] std::string progress(const Node&) const override {
    if (stored_)
      return fmt::format("all {} rows {}", stored_->rows,
                         stored_->folder.empty() ? "in memory" : "on disk");
    return stores_->text();
  }
  [[nodiscard]] Facts facts(const Node& node) const override {
    return {.keeps_rows = true,
            .caches = true,
            .unresolved = node.input().stream && stored_ == nullptr};
  }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    add_order_of_inputs(node, counting, lines);
    lines.push_back(stored_ ? fmt::format("cache() [{}]", stored_->rows) : "cache()");
  }
  [[nodiscard]] Json arguments() const override {
    const CacheOptions& own = settings_.options;
    Json arguments{{"bytes_max", own.bytes_max}};
    if (!own.folder.empty()) arguments["folder"] = own.folder;
    if (own.when_full == WhenFull::spill) arguments["spill"] = true;
    if (!settings_.moved_before.empty()) arguments["moved_before"] = settings_.moved_before;
    return arguments;
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override;
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    if (stored_) {
      return source_stage(make_stored(stored_, "cache"), node.spec, compiler.next_source(first_id));
    }
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
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override {
    if (stored_) return {{{stored_->rows, 1}}};
    return Hint::promise(node, delivery);
  }
  [[nodiscard]] std::uint64_t id_space(const Node& node) const override {
    return stored_ ? stored_->rows : Hint::id_space(node);
  }

  [[nodiscard]] RowsTarget rows_target() const override {
    const CacheOptions& own = settings_.options;
    return {line(), own.folder, own.bytes_max};
  }
  [[nodiscard]] const std::shared_ptr<RowsCell>& rows_cell() const override { return cell_; }
  [[nodiscard]] Dataset with_rows(const Dataset& input,
                                  std::shared_ptr<const StoredRows> rows) const override;

 private:
  [[nodiscard]] std::string line() const {
    const std::string& folder = settings_.options.folder;
    return folder.empty() ? "cache()" : fmt::format("cache(\"{}\")", printable(folder));
  }

  [[nodiscard]] StagePtr cached(StagePtr input, Compiler& compiler, const Node& node,
                                std::uint64_t first_id) const {
    if (const Node* random = random_below(node.input());
        random && !PENSTOCK_OFF("warn.random_cache"))
      compiler.warn(
          fmt::format("cache() follows a random op ({}): every epoch repeats the random numbers of "
                      "the first; put cache() before it",
                      describe_node(*random)));
    if (!settings_.moved_before.empty())
      compiler.note(
          fmt::format("{} was moved before {}, which is random", line(), settings_.moved_before));
    const Node* const below = random_below(node.input());
    compiler.add_cache(line(), below == nullptr ? std::string() : describe_node(*below));
    const auto [sources, random_ops] = compiler.counts();
    const CachePlaceKey place{first_id, sources, random_ops};
    // With a random seed each loader has other rows, so loaders cannot share them.
    auto store = wants_drawn_seed(node)
                     ? make_store(node, place)
                     : stores_->at(place, [&] { return make_store(node, place); });
    return cache_stage(std::move(input), std::move(store), {first_id, rounds_below(node.input())});
  }

  [[nodiscard]] std::shared_ptr<RowStore> make_store(const Node& node,
                                                     const CachePlaceKey& place) const {
    const CacheOptions& own = settings_.options;
    const bool spills = own.when_full == WhenFull::spill;
    const bool limited = own.bytes_max != UINT64_MAX;
    auto memory = std::make_shared<MemoryRows>(limited ? own.bytes_max : memory_available() / 2,
                                               limited || spills ? "" : line());
    if (own.folder.empty()) return memory;
    const Node& input = node.input();
    DiskRowsSettings settings{.title = line(), .folder = own.folder, .header = header_of(input)};
    // Random ops below draw other numbers in each place, so that the rows differ.
    if (const std::uint64_t ops = count_of(input, draws_numbers); ops > 0) {
      const std::uint64_t sources =
          count_of(input, [](const Node& at) { return at.inputs.empty(); });
      if (place != CachePlaceKey{0, sources, ops}) {
        settings.header.data.place = fmt::format("place-{}-{}-{}", place[0], place[1], place[2]);
        settings.folder += "/" + settings.header.data.place;
      }
    }
    settings.header = open_header(Io::real(), settings.folder, settings.header, settings.title);
    settings.ids_max = input.verb->id_space(input);
    if (!spills) settings.bytes_max = own.bytes_max;
    auto disk = DiskRows::shared(settings);
    if (!spills) return disk;
    return std::make_shared<SpilledRows>(std::move(memory), std::move(disk));
  }

 public:
  /// What the folder of a cache of `input` has.
  [[nodiscard]] static RowsHeader header_of(const Node& input) {
    RowsHeader header;
    header.data = rows_data(input);
    if (input.size.is_counted()) header.rows = input.batched ? rows_of(input) : input.size.count();
    if (header.rows == kUncounted) header.rows.reset();
    header.version = PENSTOCK_VERSION;
    return header;
  }

 private:
  const CacheSettings settings_;
  const std::shared_ptr<CacheStores> stores_;
  const std::shared_ptr<RowsCell> cell_;
  const std::shared_ptr<const StoredRows> stored_;
};

Dataset add_cache(const Dataset& input, std::shared_ptr<const Cache> verb,
                  const std::shared_ptr<const StoredRows>& stored) {
  Node node = after(input, std::move(verb));
  if (input.streamed()) {
    node.stream = false;
    node.size = stored ? Cardinality::of(stored->rows) : Cardinality::undecided();
  }
  return make_node(std::move(node));
}

Dataset Cache::apply(const Node& node, const std::vector<Dataset>& inputs) const {
  (void)node;
  return add_cache(inputs.front(),
                   std::make_shared<const Cache>(settings_, stores_, cell_, stored_), stored_);
}

Dataset Cache::with_rows(const Dataset& input, std::shared_ptr<const StoredRows> rows) const {
  auto verb = std::make_shared<const Cache>(settings_, stores_, cell_, rows);
  return add_cache(input, std::move(verb), rows);
}

void check_input(const Dataset& input, const CacheOptions& options) {
  const Node& node = *input.node();
  if (input.streamed() && input.batched())
    throw ConfigError("cache: the batches of a stream cannot be cached", {}, "cache before batch");
  if (input.cardinality().is_endless())
    throw ConfigError("cache: an endless dataset cannot be cached", {}, "cache before repeat");
  if (input.batched() && has_sequence(node))
    throw ConfigError("cache: the batches of a Sequence cannot be cached", {},
                      "cache them inside the Sequence");
  // Batches are stored as rows, which requires that nothing reorders the steps.
  for (const Node* at = &node; input.batched() && !at->is_leaf(); at = &at->input())
    if (!at->facts().keeps_rows)
      throw ConfigError(fmt::format("cache: batches cannot be cached after {}", describe_node(*at)),
                        {}, "put cache() before it");
  if (wants_drawn_seed(node) && (!options.folder.empty() || input.streamed()))
    throw ConfigError("cache: after a shuffle with a random seed every run has other rows", {},
                      "set a seed, or put cache() before shuffle");
  if (options.when_full == WhenFull::spill && options.folder.empty())
    throw ConfigError("cache: rows spill to a folder, and there is none", {},
                      "name one, or recompute the rows that do not fit");
  if (options.when_full == WhenFull::spill && input.streamed())
    throw ConfigError("cache: a stream is stored as a whole, and does not spill", {},
                      "name the folder alone: all of its elements are then there");
}

/// A cache of everything below the first random op of each branch.
Dataset cache_before_random(const Dataset& data, CacheSettings settings) {
  const Node& node = *data.node();
  const Node* const random = random_below(node);
  if (random == nullptr) {
    check_input(data, settings.options);
    return add_cache(data, std::make_shared<const Cache>(std::move(settings)), nullptr);
  }
  std::vector<Dataset> inputs;
  for (const NodePtr& input : node.inputs) {
    CacheSettings below = settings;
    below.moved_before = describe_node(*random);
    if (node.inputs.size() > 1 && !settings.options.folder.empty())
      below.options.folder += fmt::format("/input-{}", inputs.size());
    inputs.push_back(cache_before_random(Dataset(input), std::move(below)));
  }
  return node.verb->apply(node, inputs);
}

}  // namespace

Dataset Dataset::cache(const CacheOptions& options) const {
  if (options.place == CachePlace::automatic && random_below(*node_) != nullptr)
    return cache_before_random(*this, {options});
  check_input(*this, options);
  const auto verb = std::make_shared<const Cache>(CacheSettings{options});
  if (!options.folder.empty()) {
    Io& io = Io::real();
    const RowsTarget target = verb->rows_target();
    if (auto done = io.create_folder(options.folder); !done)
      throw ConfigError(fmt::format("{}: {}", target.title, done.failure().message), {},
                        "name a folder that can be written to");
    // What is not resolved is compared when a loader starts.
    if (streamed() && !is_unresolved(*node_)) {
      if (auto stored = open_stored(io, target, rows_data(*node_)))
        return verb->with_rows(*this, std::move(stored));
    } else if (!streamed() && !is_unresolved(*node_)) {
      (void)open_header(io, options.folder, Cache::header_of(*node_), target.title);
    }
  }
  return add_cache(*this, verb, nullptr);
}

Dataset Dataset::snapshot(const std::string& folder) const {
  CacheOptions options;
  options.folder = folder;
  if (folder.empty())
    throw ConfigError("snapshot: the folder has no name", {}, "name one that can be written to");
  return cache(options);
}

Dataset Dataset::load(const std::string& folder) {
  return from_source(make_stored(open_saved(Io::real(), folder), "load"), {});
}

Dataset parse_load(const Parsed& parsed) {
  return Dataset::load(parsed.text("folder"));
}

Dataset parse_cache(const Parsed& parsed) {
  CacheSettings settings;
  CacheOptions& options = settings.options;
  options.bytes_max = parsed.count("bytes_max");
  if (parsed.arguments.contains("folder")) options.folder = parsed.text("folder");
  if (parsed.arguments.contains("spill") && parsed.flag("spill"))
    options.when_full = WhenFull::spill;
  if (!parsed.arguments.contains("moved_before")) return parsed.input().cache(options);
  settings.moved_before = parsed.text("moved_before");
  check_input(parsed.input(), options);
  return add_cache(parsed.input(), std::make_shared<const Cache>(std::move(settings)), nullptr);
}

}  // namespace penstock
