#include "verb/shuffle.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/fault.h"
#include "order/block_order.h"
#include "order/permutation.h"
#include "plan/buffered_cursor.h"
#include "plan/flow_kinds.h"
#include "plan/moved_stage.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

/// All `size` elements in one permutation.
struct WholeOrder {
  std::uint64_t size;
  StepShuffle key;
  void operator()(const Ask& ask, Positions out) const {
    std::ranges::copy(ask.positions, out.begin());
    const Turn turn = key.reshuffle ? ask.turn : Turn{};
    Permutation(size, {key.seed, turn.pass, turn.round}).apply(out);
  }
};

/// Windows of `window` elements, each permuted separately; `size` may be kEndless.
struct WindowOrder {
  std::uint64_t size;
  std::uint64_t window;
  StepShuffle key;
  void operator()(const Ask& ask, Positions out) const {
    const Turn turn = key.reshuffle ? ask.turn : Turn{};
    for (std::size_t first = 0; first < out.size();) {
      const std::uint64_t which = ask.positions[first] / window;
      const std::uint64_t base = which * window;
      std::size_t end = first;
      for (; end < out.size() && ask.positions[end] / window == which; ++end)
        out[end] = ask.positions[end] - base;
      Permutation(std::min(window, size - base),
                  {window_seed(key.seed, which), turn.pass, turn.round})
          .apply(out.subspan(first, end - first));
      for (; first < end; ++first) out[first] += base;
    }
  }
};

/// Blocks of neighbors, mixed by windows of blocks.
struct MixedBlocks {
  BlockOrder::Sizes sizes;
  StepShuffle key;
  void operator()(const Ask& ask, Positions out) const {
    const Turn turn = key.reshuffle ? ask.turn : Turn{};
    std::ranges::copy(ask.positions, out.begin());
    BlockOrder(sizes, {key.seed, turn.pass, turn.round}).apply(out);
  }
};

/// Pulls a window of a stream, then returns its rows in permuted order.
class WindowCursor final : public BufferedCursor<Cursor> {
 public:
  WindowCursor(const Flow& input, Turn turn, std::uint64_t size, StepShuffle key)
      : BufferedCursor(input.open(turn)),
        turn_(key.reshuffle ? turn : Turn{}),
        size_(size),
        seed_(key.seed),
        buffer_(input.spec()) {}

 protected:
  Result<std::optional<std::size_t>> fill(Pulling& pulling) override {
    constexpr std::uint64_t kAtOnce = 4096;
    std::uint64_t rows = 0;
    while (rows < size_) {
      const std::size_t wanted = std::min(size_ - rows, kAtOnce);
      buffer_.reserve(rows + wanted);
      auto got = input_->pull(buffer_.rows(rows, wanted), pulling);
      if (!got) return std::move(got.failure());
      rows += *got;
      if (*got < wanted) break;
    }
    if (rows == 0) return std::optional<std::size_t>();
    picks_.resize(rows);
    std::iota(picks_.begin(), picks_.end(), std::uint64_t{0});
    Permutation(rows, {window_seed(seed_, window_), turn_.pass, turn_.round}).apply(picks_);
    return std::optional<std::size_t>(rows);
  }
  Result<void> hand_out(std::size_t first, const BlockView& out) override {
    pick_rows(buffer_.rows(0, picks_.size()), std::span(picks_).subspan(first, out.rows), out);
    return {};
  }
  void block_done() override { ++window_; }
  std::span<std::uint64_t> place() override { return {&window_, 1}; }

 private:
  const Turn turn_;
  const std::uint64_t size_;
  const std::uint64_t seed_;
  RowBuffer buffer_;
  std::uint64_t window_ = 0;          // windows before this one
  std::vector<std::uint64_t> picks_;  // rows of the buffer, permuted
};

std::string with_commas(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", with_commas(count), what, count == 1 ? "" : "s");
}

/// How many bytes the samples of a block are in their file, if they are neighbors there; or 0.
std::uint64_t block_bytes(const BlockOrder::Sizes& sizes, const Stage& input) {
  constexpr std::uint64_t kLookedAt = 64;
  const std::uint64_t looked_at = std::min({sizes.samples, sizes.block, kLookedAt});
  if (looked_at == 0 || input.ids().parts.empty()) return 0;
  std::vector<std::uint64_t> positions(looked_at);
  std::iota(positions.begin(), positions.end(), std::uint64_t{0});
  std::vector<std::uint64_t> ids(looked_at);
  Scratch scratch;
  input.identify({{}, positions}, ids.data(), scratch);
  for (std::uint64_t i = 1; i < looked_at; ++i)
    if (ids[i] != ids[0] + i) return 0;
  const auto& origin = input.ids().parts.front().origin;
  return origin ? origin->bytes_per_sample() * std::min(sizes.block, sizes.samples) : 0;
}

/// How random a shuffle of blocks is, and what reading costs.
std::string locality_text(const BlockOrder::Sizes& sizes, const Stage& input) {
  const std::uint64_t mixed = std::min(sizes.window_blocks(), sizes.blocks());
  std::string text = fmt::format(
      ": {} of {} in random order, mixed {} at a time; a sample's neighbors in a batch come from "
      "{}",
      counted(sizes.blocks(), "block"), counted(sizes.block, "sample"), with_commas(mixed),
      counted(mixed, "block"));
  if (const std::uint64_t bytes = block_bytes(sizes, input); bytes > 0)
    text += fmt::format("; at any time, reads are within {} of about {} KiB",
                        counted(mixed, "piece"), with_commas((bytes + 1023) / 1024));
  return text;
}

void check_blocks(const Dataset& in) {
  if (in.batched())
    throw ConfigError("shuffle: blocks are of samples, and cannot be of steps", {},
                      "shuffle({.blocks = n}) before batch");
  if (in.streamed())
    throw ConfigError("shuffle: a stream has no blocks: it cannot be read from the middle", {},
                      "shuffle({.window = n})");
  if (in.cardinality().is_endless())
    throw ConfigError("shuffle: an endless dataset cannot be shuffled by blocks", {},
                      "shuffle before repeat: each round then has its own order");
}

class Shuffle final : public Move {
 public:
  explicit Shuffle(const ShuffleOptions& options) : options_(options) {}
  [[nodiscard]] const ShuffleOptions& options() const { return options_; }
  [[nodiscard]] Words words() const override {
    const Seed& seed = options_.seed;
    return {
        "shuffle",
        fmt::format("shuffle(seed={}{}{}{})", seed.drawn ? "random" : fmt::format("{}", seed.value),
                    options_.blocks ? fmt::format(", blocks={}", *options_.blocks) : "",
                    options_.window ? fmt::format(", window={}", *options_.window) : "",
                    options_.reshuffle_each_epoch ? "" : ", same every epoch")};
  }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.counts_steps = true,
            .hides_rows = true,
            .reshuffles = options_.reshuffle_each_epoch || options_.seed.drawn,
            .draws_seed = options_.seed.drawn};
  }
  [[nodiscard]] Json arguments() const override {
    Json json{{"seed", options_.seed.value},
              {"drawn", options_.seed.drawn},
              {"reshuffle", options_.reshuffle_each_epoch},
              {"window", options_.window.value_or(0)}};
    if (options_.blocks) json["blocks"] = *options_.blocks;
    return json;
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().shuffle(options_);
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    return walk.of(node.input())
        .shuffled({options_.seed.drawn ? walk.drawn_seed : options_.seed.value,
                   options_.reshuffle_each_epoch && !PENSTOCK_OFF("shuffle.anew")});
  }

  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    const Compiler::RandomOrder order(compiler, !options_.window && !options_.blocks);
    if (!options_.blocks) return Move::samples(compiler, node, first_id);
    StagePtr input = compiler.samples(node.input(), first_id);
    const BlockOrder::Sizes sizes = sizes_of(node.input().size.count());
    compiler.note(words().line + locality_text(sizes, *input));
    return moved_stage(std::move(input), MixedBlocks{sizes, key(compiler)});
  }

 protected:
  [[nodiscard]] StagePtr move(StagePtr input, std::uint64_t size,
                              const Compiler& compiler) const override {
    if (options_.window)
      return moved_stage(std::move(input), WindowOrder{size, *options_.window, key(compiler)});
    return moved_stage(std::move(input), WholeOrder{size, key(compiler)});
  }
  [[nodiscard]] FlowPtr move(FlowPtr input, const Compiler& compiler) const override {
    const ElementSpec spec = input->spec();
    return same_rows_over<WindowCursor>(std::move(input), spec, options_.window.value(),
                                        key(compiler));
  }
  /// `Dataset::shuffle` rejects the steps of a stream.
  [[nodiscard]] StepFlowPtr move(StepFlowPtr input) const override { return input; }

 private:
  [[nodiscard]] StepShuffle key(const Compiler& compiler) const {
    return compiler.shuffle_key(options_.seed, options_.reshuffle_each_epoch);
  }
  [[nodiscard]] BlockOrder::Sizes sizes_of(std::uint64_t samples) const {
    return {samples, options_.blocks.value_or(1), options_.window.value_or(0)};
  }

  const ShuffleOptions options_;
};

}  // namespace

std::optional<ShuffleOptions> whole_shuffle(const Node& node) {
  const auto* const shuffle = node.as<Shuffle>();
  if (shuffle == nullptr || node.batched) return std::nullopt;
  if (shuffle->options().window || shuffle->options().blocks) return std::nullopt;
  return shuffle->options();
}

Dataset Dataset::shuffle(const ShuffleOptions& options) const {
  if (options.window == 0U)
    throw ConfigError("shuffle: window must be positive, got 0", {},
                      "set the number of elements to permute at a time");
  if (options.blocks == 0U)
    throw ConfigError("shuffle: blocks must be positive, got 0", {},
                      "set the number of samples of a block");
  if (options.blocks) check_blocks(*this);
  if (batched() && (options.window || streamed()))
    throw ConfigError("shuffle: windows of steps, and steps of a stream, cannot be shuffled", {},
                      "shuffle({.window = n}) before batch");
  if (!options.window && streamed())
    throw ConfigError("shuffle: a stream cannot be shuffled as a whole: its end is unknown", {},
                      "shuffle({.window = n}), or shuffle before the verb that makes it a stream");
  if (!options.window && cardinality().is_endless())
    throw ConfigError("shuffle: an endless dataset cannot be shuffled as a whole", {},
                      "shuffle before repeat: each round then has its own order");
  return add_verb<Shuffle>(*this, options);
}

Dataset parse_shuffle(const Parsed& parsed) {
  Seed seed(parsed.count("seed"));
  seed.drawn = parsed.flag("drawn");
  ShuffleOptions options{seed, parsed.flag("reshuffle")};
  if (const std::uint64_t window = parsed.count("window"); window > 0) options.window = window;
  if (parsed.arguments.contains("blocks")) options.blocks = parsed.count("blocks");
  return parsed.input().shuffle(options);
}

}  // namespace penstock
