// One dataset per element: flat_map and interleave.
// tested in src/plan/flows_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/guarded.h"
#include "plan/flow_kinds.h"
#include "sample/rows.h"
#include "trace/activity.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

struct Expansion {
  /// The flow of one element's dataset; throws what the user's function throws.
  std::function<FlowPtr(const Sample& element)> open;
  std::uint64_t cycle = 1;
  std::uint64_t block = UINT64_MAX;
  std::string title;
  ElementSpec spec;  // of the output elements
  std::uint64_t first_id = 0;
};

/// Copies rows [at, end), `block` at a time, to places `stride` rows apart, starting at `first`.
/// Does not copy their identity.
struct Stripes {
  std::size_t at = 0;
  std::size_t end = 0;
  std::size_t first = 0;
  std::size_t block = 1;
  std::size_t stride = 1;
};
template <typename Word>
void copy_words(const std::byte* from, std::byte* to, std::size_t count, std::size_t stride) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(to + i * stride, from + i * sizeof(Word), sizeof(Word));
}
void copy_stripes(const BlockView& from, const BlockView& to, const Stripes& stripes) {
  const std::size_t rows = stripes.end - stripes.at;
  const std::size_t count = rows / stripes.block;
  const auto place = [&](std::size_t row) {
    return stripes.first + row / stripes.block * stripes.stride + row % stripes.block;
  };
  for (std::size_t i = 0; i < from.columns.size(); ++i) {
    const Column& source = from.columns[i];
    const Column& target = to.columns[i];
    const std::size_t bytes = stripes.block * source.row_bytes;
    const std::size_t stride = stripes.stride * source.row_bytes;
    const std::byte* const data = source.data + stripes.at * source.row_bytes;
    std::byte* const first = target.data + stripes.first * source.row_bytes;
    if (!source.dense()) {
      for (std::size_t row = 0; row < rows; ++row)
        target.tensors[place(row)] = source.tensors[stripes.at + row];
    } else if (bytes == sizeof(std::uint64_t)) {
      copy_words<std::uint64_t>(data, first, count, stride);
    } else if (bytes == sizeof(std::uint32_t)) {
      copy_words<std::uint32_t>(data, first, count, stride);
    } else if (bytes > 0) {
      for (std::size_t k = 0; k < count; ++k)
        std::memcpy(first + k * stride, data + k * bytes, bytes);
    }
  }
  if (from.samples != nullptr)
    for (std::size_t row = 0; row < rows; ++row)
      to.samples[place(row)] = from.samples[stripes.at + row];
}

/// Takes turns between open datasets, as tf.data does: an empty slot is filled on its turn; a
/// dataset that ends passes its turn to the next.
class ExpandCursor final : public Cursor {
 public:
  ExpandCursor(const Flow& input, Turn turn, const Expansion& expansion)
      : input_flow_(input),
        expansion_(expansion),
        turn_(turn),
        input_(input.open(turn)),
        element_(input.spec()),
        slots_(expansion.cycle) {
    element_.reserve(1);
  }

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows) {
      Slot& slot = slots_[slot_];
      if (!slot.cursor && !input_ended_) {
        if (auto done = open_next(slot, pulling); !done) return std::move(done.failure());
      }
      if (!slot.cursor) {
        if (open_ == 0) break;
        advance();
        continue;
      }
      if (auto rounds = take_rounds(out, made, pulling); !rounds || *rounds > 0) {
        if (!rounds) return rounds;
        made += *rounds;
        continue;
      }
      auto got = take_block(slot, out, made, pulling);
      if (!got) return got;
      made += *got;
    }
    for (std::size_t row = 0; row < made; ++row)
      out.identity.sample_id[row] = expansion_.first_id + pulled_ + row;
    std::fill_n(out.identity.occurrence, made, turn_.round);
    pulled_ += made;
    return made;
  }

  void save(Anchor& anchor) override {
    anchor.numbers.reserve(anchor.numbers.size() + 8 + 4 * open_);
    anchor.numbers.insert(anchor.numbers.end(),
                          {pulled_, slot_, taken_, index_, input_ended_ ? 1ULL : 0ULL, open_});
    // The input is anchored before the oldest element that is still open.
    const Slot* oldest = nullptr;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].cursor) continue;
      anchor.numbers.insert(anchor.numbers.end(), {i, slots_[i].index});
      if (oldest == nullptr || slots_[i].index < oldest->index) oldest = &slots_[i];
    }
    Anchor before;
    if (oldest == nullptr) input_->save(before);
    write_anchor(oldest == nullptr ? before : oldest->before, anchor);
    for (Slot& slot : slots_)
      if (slot.cursor) slot.cursor->save(anchor);
  }

  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    pulled_ = anchor.number();
    slot_ = anchor.number() % slots_.size();
    taken_ = anchor.number();
    const std::uint64_t index = anchor.number();
    input_ended_ = anchor.number() != 0;
    const std::uint64_t open = anchor.number();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted;  // index, slot
    for (std::uint64_t i = 0; i < open; ++i) {
      const std::uint64_t slot = anchor.number();
      wanted.emplace_back(anchor.number(), slot % slots_.size());
    }
    const Anchor before = anchor.anchor();
    AnchorReader reader(before);
    if (auto done = input_->restore(reader, pulling); !done) return done;
    std::ranges::sort(wanted);
    index_ = wanted.empty() ? index : wanted.front().first;
    for (std::size_t next = 0; index_ < index;) {
      Anchor at;
      auto more = pull_element(at, pulling);
      if (!more) return std::move(more.failure());
      if (!*more) return lost();
      if (next == wanted.size() || wanted[next].first != index_ - 1) continue;
      if (auto done = open_element(slots_[wanted[next++].second], std::move(at), pulling); !done)
        return done;
    }
    for (Slot& slot : slots_)
      if (slot.cursor)
        if (auto done = slot.cursor->restore(anchor, pulling); !done) return done;
    return {};
  }

 private:
  struct Slot {
    FlowPtr flow;
    CursorPtr cursor;  // null while the slot is empty
    std::uint64_t index = 0;
    std::uint64_t element_id = 0;
    Anchor before;  // the state of the input before this element
    std::unique_ptr<RowBuffer> rows;
    BlockView pulled;    // in `rows`, or lent by the cursor
    std::size_t at = 0;  // rows [at, end) are not delivered yet
    std::size_t end = 0;
    bool ended = false;
    bool fits = false;  // its rows have exactly the spec of this flow
  };

  void advance() {
    slot_ = (slot_ + 1) % slots_.size();
    taken_ = 0;
  }

  /// Writes whole rounds of all slots at once if no slot is empty or ends. Otherwise returns 0 and
  /// leaves the pulled rows in the slots.
  Result<std::size_t> take_rounds(const BlockView& out, std::size_t made, Pulling& pulling) {
    const std::uint64_t block = expansion_.block;
    const std::uint64_t turns = (out.rows - made) / slots_.size() / block;
    if (turns < 2 || taken_ != 0 || open_ < slots_.size()) return std::size_t{0};
    for (const Slot& slot : slots_)
      if (slot.at < slot.end || slot.ended) return std::size_t{0};
    bool all = true;
    for (Slot& slot : slots_) {
      auto done = refill(slot, turns * block, pulling);
      if (!done) return std::move(done.failure());
      all = all && !slot.ended;
    }
    if (!all) return std::size_t{0};
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      const std::size_t turn = (i + slots_.size() - slot_) % slots_.size();
      copy_stripes(slot.pulled, out,
                   {slot.at, slot.end, made + turn * block, block, slots_.size() * block});
      slot.at = slot.end;
    }
    return slots_.size() * turns * block;
  }

  Result<void> refill(Slot& slot, std::uint64_t rows, Pulling& pulling) {
    if (slot.fits) {
      if (const LentRows lent = slot.cursor->lend(rows); lent.block != nullptr) {
        slot.pulled = *lent.block;
        slot.at = lent.first;
        slot.end = lent.first + rows;
        return {};
      }
    }
    slot.rows->reserve(rows);
    slot.pulled = slot.rows->rows(0, rows);
    auto got = slot.fits ? slot.cursor->pull(slot.pulled, pulling)
                         : pull_as(*slot.cursor, slot.flow->spec(), slot.pulled, pulling);
    if (!got) return std::move(got.failure());
    slot.at = 0;
    slot.end = *got;
    slot.ended = *got < rows;
    return {};
  }

  void close(Slot& slot, const Pulling& pulling) {
    // Closing may take a while, and destroys ops whose titles the trace may refer to.
    const trace::MeasuredCall call = pulling.context.enter(expansion_.title, slot.element_id, 1);
    slot.cursor.reset();
    slot = Slot{};
    --open_;
  }

  /// Up to the rest of the slot's block, from rows pulled several at a time.
  Result<std::size_t> take_block(Slot& slot, const BlockView& out, std::size_t made,
                                 Pulling& pulling) {
    const std::uint64_t block = expansion_.block;
    const std::uint64_t rest = out.rows - made;
    const std::uint64_t wanted = std::min(rest, block - taken_);
    if (slot.at == slot.end) {
      // For this many rows each slot has at least this many turns, so nothing is pulled that this
      // call does not deliver.
      const std::uint64_t turns = rest / slots_.size() / block;
      const std::uint64_t rows = turns > 1 && taken_ == 0 ? turns * block : wanted;
      if (auto done = refill(slot, rows, pulling); !done) return std::move(done.failure());
    }
    const std::size_t rows = std::min<std::uint64_t>(wanted, slot.end - slot.at);
    if (rows > 0) {
      copy_rows(slot.pulled, slot.at, out, made, rows);
      slot.at += rows;
      taken_ += rows;
    }
    if (rows < wanted && slot.ended) {
      close(slot, pulling);
      advance();
    } else if (taken_ == block) {
      advance();
    }
    return rows;
  }

  /// Pulls the next element of the input; `before` is the state of the input before it.
  Result<bool> pull_element(Anchor& before, Pulling& pulling) {
    input_->save(before);
    auto got = input_->pull(element_.rows(0, 1), pulling);
    if (!got) return std::move(got.failure());
    if (*got > 0) ++index_;
    return *got > 0;
  }

  /// Opens the dataset of the pulled element.
  Result<void> open_element(Slot& slot, Anchor before, const Pulling& pulling) {
    const BlockView element = element_.rows(0, 1);
    const trace::MeasuredCall call =
        pulling.context.enter(expansion_.title, element.identity.sample_id[0], 1);
    FlowPtr flow;
    auto done = guarded([&] { flow = expansion_.open(read_row(element, 0)); },
                        [] { return std::size_t{0}; });
    if (!done) {
      done.failure().where.op = expansion_.title;
      return at_sample(std::move(done.failure()), input_flow_.ids(), element);
    }
    slot.flow = std::move(flow);
    slot.index = index_ - 1;
    slot.element_id = element.identity.sample_id[0];
    slot.cursor =
        slot.flow->open({turn_.pass, nested_round(turn_.round, kEndlessRounds, slot.index)});
    slot.before = std::move(before);
    slot.rows = std::make_unique<RowBuffer>(expansion_.spec);
    slot.fits = expansion_.spec.known && slot.flow->spec() == expansion_.spec;
    ++open_;
    return {};
  }

  /// Opens the dataset of the next element; if the policy allows, skips elements that fail.
  Result<void> open_next(Slot& slot, Pulling& pulling) {
    while (true) {
      Anchor before;
      auto more = pull_element(before, pulling);
      if (!more) return std::move(more.failure());
      if (!*more) {
        input_ended_ = true;
        return {};
      }
      auto done = open_element(slot, std::move(before), pulling);
      if (done || pulling.failures == nullptr || done.failure().must_raise()) return done;
      pulling.failures->add(std::move(done.failure()), nullptr);
    }
  }

  [[nodiscard]] Failure lost() const {
    Failure failure{"the input ended earlier than when the state was saved"};
    failure.where.op = expansion_.title;
    return failure;
  }

  const Flow& input_flow_;
  const Expansion& expansion_;
  const Turn turn_;
  CursorPtr input_;
  RowBuffer element_;
  std::vector<Slot> slots_;
  std::uint64_t slot_ = 0;   // the current slot
  std::uint64_t taken_ = 0;  // rows taken from its block
  std::uint64_t open_ = 0;   // slots with a cursor
  std::uint64_t index_ = 0;  // elements of the input pulled
  std::uint64_t pulled_ = 0;
  bool input_ended_ = false;
};

class Expand final : public OnSamples {
 public:
  Expand(std::function<Dataset(const Sample&)> fn, const InterleaveOptions& options,
         std::string word)
      : fn_(std::move(fn)), options_(options), word_(std::move(word)) {}
  [[nodiscard]] Words words() const override {
    const std::string name = options_.name.empty() ? "" : fmt::format("\"{}\"", options_.name);
    if (word_ == "flat_map") return {word_, fmt::format("flat_map({})", name)};
    return {word_, fmt::format("interleave({}{}cycle={}, block={})", name, name.empty() ? "" : ", ",
                               options_.cycle, options_.block)};
  }
  [[nodiscard]] Facts facts(const Node&) const override { return {}; }
  [[nodiscard]] Json arguments() const override {
    return {{"name", required_name(word_, options_.name)}};
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return add(inputs.front(), fn_, options_, word_);
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    FlowPtr input = compiler.flow(node.input(), first_id);
    constexpr std::uint64_t kManyCursors = 256;
    if (options_.cycle > kManyCursors)
      compiler.note(
          fmt::format("{}: a state stores the positions of up to {} open datasets in at most "
                      "64 KB; a smaller cycle needs less",
                      words().line, options_.cycle));
    const std::string title = compiler.numbered(words().line);
    const SourcePlace place = compiler.next_source(first_id);
    Expansion expansion{opener(compiler.options(), node.spec),
                        options_.cycle,
                        options_.block,
                        title,
                        node.spec,
                        first_id};
    return rows_over<ExpandCursor>(std::move(input), node.spec,
                                   IdSpace{{{first_id, place.ordinal}}}, std::move(expansion));
  }
  [[nodiscard]] std::uint64_t id_space(const Node&) const override { return kStreamIds; }
  [[nodiscard]] std::string name() const override { return options_.name; }

  static Dataset add(const Dataset& input, std::function<Dataset(const Sample&)> fn,
                     const InterleaveOptions& options, const std::string& word) {
    constexpr std::uint64_t kCycleMax = 1024;
    refuse_if_batched(input, word.c_str(), "unbatch() first");
    if (options.cycle < 1 || options.cycle > kCycleMax)
      throw ConfigError(
          fmt::format("{}: cycle must be 1 to {}, got {}", word, kCycleMax, options.cycle));
    if (options.block < 1)
      throw ConfigError(fmt::format("{}: block must be positive, got 0", word));
    Node node = after(input, std::make_shared<const Expand>(std::move(fn), options, word));
    node.spec = options.spec.value_or(ElementSpec::unknown());
    node.size = input.cardinality().is_endless() ? input.cardinality() : Cardinality::unknown();
    node.stream = true;
    return make_node(std::move(node));
  }

 private:
  /// Opens the dataset that the function returns for an element, and checks it.
  [[nodiscard]] std::function<FlowPtr(const Sample&)> opener(const CompileOptions& options,
                                                             const ElementSpec& spec) const {
    return [fn = fn_, word = word_, spec, seed = options.drawn_seed,
            draws = options.draws](const Sample& element) {
      const Dataset inner = fn(element).resolve();
      if (inner.batched())
        throw ConfigError(fmt::format("{}: the function returned batches", word), {},
                          "return samples, and batch the result");
      if (spec.known && inner.element_spec().known && inner.element_spec() != spec)
        throw ConfigError(fmt::format("{}: the function returned elements {}, declared as {}", word,
                                      inner.element_spec().text(), spec.text()));
      if (!draws && wants_drawn_seed(*inner.node()))
        throw ConfigError(
            fmt::format("{}: the function returned a shuffle with a random seed; random seeds are "
                        "drawn when a loader starts, before the function is called",
                        word),
            {}, "use a fixed seed, drawn outside the function");
      return compile_flow(*inner.node(), {std::nullopt, seed, draws});
    };
  }

  const std::function<Dataset(const Sample&)> fn_;
  const InterleaveOptions options_;
  const std::string word_;
};

/// The function stays with its dataset; the text names it.
Dataset parse_expansion(const Parsed& parsed) {
  const Node& found = parsed.named.expansion(parsed.text("name"));
  return found.verb->apply(found, {parsed.input()});
}

}  // namespace

Dataset Dataset::expand(std::function<Dataset(const Sample&)> fn, const InterleaveOptions& options,
                        const char* word) const {
  return Expand::add(*this, std::move(fn), options, word);
}

Dataset parse_flat_map(const Parsed& parsed) {
  return parse_expansion(parsed);
}
Dataset parse_interleave(const Parsed& parsed) {
  return parse_expansion(parsed);
}

}  // namespace penstock
