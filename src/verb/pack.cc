// Documents packed into rows of one length.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "order/packing.h"
#include "order/permutation.h"
#include "plan/buffered_cursor.h"
#include "plan/failures.h"
#include "plan/flow_kinds.h"
#include "sample/rows.h"
#include "verb/catalogue.h"
#include "verb/grouped_stage.h"
#include "verb/kinds.h"
#include "verb/lengths.h"
#include "verb/packed_rows.h"
#include "verb/shuffle.h"

namespace penstock {
namespace {

constexpr std::uint64_t kBlockDocuments = 4096;

/// Where the rows of each block begin; depends on the lengths only.
struct PackIndex {
  std::shared_ptr<const Lengths> lengths;
  std::vector<std::uint64_t> first_row;  // of each block; the last is the number of rows
  std::uint64_t tokens = 0;              // in all rows, with separators
  std::uint64_t left_out = 0;            // tokens of documents that were cut or dropped

  [[nodiscard]] std::uint64_t rows() const { return first_row.back(); }
  [[nodiscard]] std::span<const std::uint32_t> block(std::uint64_t number) const {
    return std::span(lengths->of)
        .subspan(number * kBlockDocuments,
                 std::min<std::uint64_t>(kBlockDocuments,
                                         lengths->of.size() - number * kBlockDocuments));
  }
};

std::vector<std::uint32_t> plain_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

std::shared_ptr<const PackIndex> index_of(std::shared_ptr<const Lengths> lengths,
                                          const PackRules& rules) {
  auto index = std::make_shared<PackIndex>();
  index->lengths = std::move(lengths);
  const std::vector<std::uint32_t>& all = index->lengths->of;
  index->first_row.push_back(0);
  for (std::uint64_t block = 0; block * kBlockDocuments < all.size(); ++block) {
    const auto documents = index->block(block);
    const PackedBlock packed = pack_block(documents, plain_order(documents.size()), rules);
    index->first_row.push_back(index->first_row.back() + packed.rows());
    std::uint64_t packed_tokens = 0;
    for (const DocumentPart& part : packed.parts) packed_tokens += part.count;
    index->tokens += packed_tokens;
    for (const std::uint32_t length : documents)
      if (length > 0) index->left_out += length + (rules.separated ? 1 : 0);
    index->left_out -= packed_tokens;
  }
  return index;
}

class PackStage final : public GroupedStage {
 public:
  PackStage(StagePtr input, std::shared_ptr<const PackIndex> index, PackSettings settings,
            StepShuffle key, SourcePlace place, std::string title)
      : GroupedStage(packed_row_spec(settings), std::move(input), place, std::move(title)),
        index_(std::move(index)),
        settings_(std::move(settings)),
        key_(key) {}

 protected:
  Result<void> write(Turn turn, std::uint64_t number, const BlockView& out, std::size_t row,
                     const Context& context) const override {
    const auto after = std::ranges::upper_bound(index_->first_row, number);
    const auto block = static_cast<std::uint64_t>(after - index_->first_row.begin()) - 1;
    const std::shared_ptr<const PackedBlock> packed = packed_block(turn, block);
    const auto parts = packed->row(number - index_->first_row[block]);

    const Scratch::Frame frame(context.scratch);
    std::uint64_t* const positions = context.scratch.array<std::uint64_t>(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i)
      positions[i] = block * kBlockDocuments + parts[i].document;
    Identity identity{context.scratch.array<std::uint64_t>(parts.size()),
                      context.scratch.array<std::uint64_t>(parts.size()),
                      context.scratch.array<std::uint8_t>(parts.size())};
    std::fill_n(identity.failed, parts.size(), kRowGood);
    const ScratchBlock documents(input_->spec(), parts.size(), context.scratch, identity);
    if (auto done = input_->produce({turn, {positions, parts.size()}}, documents.view(), context);
        !done)
      return done;

    if (auto done = refuse_masked(documents.view()); !done) return done;
    PackedRowWriter writer(settings_, out, row);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto done = writer.add(parts[i], read_row(documents.view(), i),
                             index_->block(block)[parts[i].document]);
      if (!done) return at_input(std::move(done.failure()), documents.view(), i);
    }
    writer.finish();
    return {};
  }

 private:
  struct BlockKey {
    std::uint64_t pass;
    std::uint64_t round;
    std::uint64_t block;
    auto operator<=>(const BlockKey&) const = default;
  };

  /// The rows of a block. Packed blocks are kept for the next rows; those of earlier passes are
  /// dropped first.
  std::shared_ptr<const PackedBlock> packed_block(Turn turn, std::uint64_t block) const {
    const Turn own = key_.reshuffle ? turn : Turn{};
    const BlockKey key{own.pass, own.round, block};
    {
      Lock lock(mutex_);
      if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
    }
    const auto lengths = index_->block(block);
    std::vector<std::uint32_t> order = plain_order(lengths.size());
    if (settings_.shuffle) {
      std::vector<std::uint64_t> positions(order.begin(), order.end());
      Permutation(lengths.size(), {window_seed(key_.seed, block), own.pass, own.round})
          .apply(positions);
      std::ranges::copy(positions, order.begin());
    }
    auto packed = std::make_shared<const PackedBlock>(pack_block(lengths, order, settings_.rules));
    Lock lock(mutex_);
    constexpr std::size_t kKept = 1024;  // of about 100 KB
    if (kept_.size() >= kKept) kept_.erase(kept_.begin());
    kept_.emplace(key, packed);
    return packed;
  }

  const std::shared_ptr<const PackIndex> index_;
  const PackSettings settings_;
  const StepShuffle key_;
  mutable Mutex mutex_;
  mutable std::map<BlockKey, std::shared_ptr<const PackedBlock>> kept_ PENSTOCK_GUARDED_BY(mutex_);
};

/// Packs the documents of a stream in blocks of 4096, or fewer if they fill 256 rows.
class PackCursor final : public BufferedCursor<Cursor> {
 public:
  PackCursor(const Flow& input, Turn turn, const PackSettings& settings, const IdSpace& ids,
             const std::string& title)
      : BufferedCursor(input.open(turn)),
        turn_(turn),
        settings_(settings),
        ids_(ids),
        input_ids_(input.ids()),
        title_(title),
        documents_(input.spec()) {}

 protected:
  Result<std::optional<std::size_t>> fill(Pulling& pulling) override {
    constexpr std::size_t kAtOnce = 64;
    constexpr std::uint64_t kBlockRows = 256;
    lengths_.clear();
    std::uint64_t tokens = 0;
    bool ended = false;
    while (!ended && lengths_.size() < kBlockDocuments &&
           tokens < kBlockRows * settings_.rules.length) {
      const std::size_t first = lengths_.size();
      documents_.reserve(first + kAtOnce);
      auto got = input_->pull(documents_.rows(first, kAtOnce), pulling);
      if (!got) return std::move(got.failure());
      ended = *got < kAtOnce;
      if (*got == 0) break;
      if (auto done = count(documents_.rows(first, *got), pulling); !done)
        return std::move(done.failure());
      for (std::size_t i = first; i < lengths_.size(); ++i) tokens += lengths_[i];
    }
    if (ended && lengths_.empty()) return std::optional<std::size_t>();
    packed_ = pack_block(lengths_, plain_order(lengths_.size()), settings_.rules);
    return std::optional<std::size_t>(packed_.rows());
  }
  Result<void> hand_out(std::size_t first, const BlockView& out) override {
    const BlockView documents = documents_.rows(0, lengths_.size());
    for (std::size_t i = 0; i < out.rows; ++i) {
      out.identity.sample_id[i] = ids_.parts.front().first_id + handed_out_++;
      out.identity.occurrence[i] = turn_.round;
      PackedRowWriter writer(settings_, out, i);
      for (const DocumentPart& part : packed_.row(first + i)) {
        auto done = writer.add(part, read_row(documents, part.document), lengths_[part.document]);
        if (!done) return located(std::move(done.failure()), documents, part.document);
      }
      writer.finish();
    }
    return {};
  }
  std::span<std::uint64_t> place() override { return {&handed_out_, 1}; }

 private:
  /// Adds the lengths of documents. Those that cannot be packed are left out if failures are
  /// skipped.
  Result<void> count(const BlockView& documents, Pulling& pulling) {
    std::vector<std::uint8_t> good(documents.rows, 1);
    for (std::size_t row = 0; row < documents.rows; ++row) {
      auto length = document_length(settings_, read_row(documents, row));
      if (length && refuses(*length))
        length = Failure{
            fmt::format("a document has {} tokens, a row has {}", *length, settings_.rules.length),
            {},
            "use longer rows, or another policy for documents that are too long"};
      if (length) {
        lengths_.push_back(*length);
        continue;
      }
      Failure failure = located(std::move(length.failure()), documents, row);
      if (pulling.failures == nullptr) return failure;
      pulling.failures->add(std::move(failure), nullptr);
      good[row] = 0;
    }
    (void)keep_rows(documents, good);
    return {};
  }
  [[nodiscard]] bool refuses(std::uint32_t length) const {
    return settings_.options.how == PackHow::best_fit &&
           settings_.options.too_long == LongDocument::refuse &&
           length + (settings_.rules.separated ? 1U : 0U) > settings_.rules.length;
  }
  [[nodiscard]] Failure located(Failure failure, const BlockView& documents,
                                std::size_t row) const {
    failure.row = row;
    failure.where.op = title_;
    return at_sample(std::move(failure), input_ids_, documents);
  }

  const Turn turn_;
  const PackSettings& settings_;
  const IdSpace& ids_;
  const IdSpace& input_ids_;
  const std::string& title_;
  RowBuffer documents_;
  std::vector<std::uint32_t> lengths_;  // of the documents of the block
  PackedBlock packed_;
  std::uint64_t handed_out_ = 0;
};

constexpr std::array<const char*, 2> kHow{"stream", "best_fit"};
constexpr std::array<const char*, 4> kTooLong{"split", "cut", "drop", "refuse"};

Dataset add_pack(const Dataset& input, const PackSettings& settings,
                 std::shared_ptr<LengthCell> cell, std::shared_ptr<const PackIndex> index);

class Pack final : public OnSamples, public NeedsLengths {
 public:
  Pack(PackSettings settings, std::shared_ptr<LengthCell> cell,
       std::shared_ptr<const PackIndex> index)
      : settings_(std::move(settings)), cell_(std::move(cell)), index_(std::move(index)) {}

  [[nodiscard]] Words words() const override {
    const PackOptions& own = settings_.options;
    std::string line =
        fmt::format("pack({}, {}", settings_.rules.length, kHow[static_cast<std::size_t>(own.how)]);
    if (own.separator) line += fmt::format(", separator={}", *own.separator);
    if (own.how == PackHow::best_fit)
      line += fmt::format(", too_long={}", kTooLong[static_cast<std::size_t>(own.too_long)]);
    if (settings_.shuffle)
      line += settings_.shuffle->seed.drawn
                  ? ", seed=random"
                  : fmt::format(", seed={}", settings_.shuffle->seed.value);
    line += ')';
    if (index_)
      line += fmt::format(" [{} rows, #{}]", index_->rows(), index_->lengths->digest.substr(0, 8));
    return {"pack", line};
  }
  [[nodiscard]] Facts facts(const Node& node) const override {
    return {.reshuffles = settings_.shuffle && settings_.shuffle->reshuffle_each_epoch,
            .draws_seed = settings_.shuffle && settings_.shuffle->seed.drawn,
            .unresolved = index_ == nullptr && !node.stream};
  }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    OnSamples::add_order(node, counting, lines);
    // The lengths of indexed data are part of its line.
    if (node.stream && !settings_.options.field.empty())
      lines.push_back(fmt::format("by field {}", settings_.options.field));
  }
  void add_values(const Node&, Digest& digest) const override {
    digest.add(fmt::format("pad {} mask {} field {}", settings_.options.pad, settings_.options.mask,
                           settings_.options.field));
    if (settings_.options.attention == PackAttention::row) digest.add("one document per row");
    if (settings_.options.with_cu_seqlens) digest.add("cu_seqlens");
  }
  [[nodiscard]] Json arguments() const override {
    const PackOptions& own = settings_.options;
    Json json{{"length", settings_.rules.length},
              {"how", static_cast<unsigned>(own.how)},
              {"too_long", static_cast<unsigned>(own.too_long)},
              {"pad", own.pad},
              {"field", own.field},
              {"mask", own.mask},
              {"attention", static_cast<unsigned>(own.attention)},
              {"cu_seqlens", own.with_cu_seqlens}};
    if (own.separator) json["separator"] = *own.separator;
    if (settings_.shuffle)
      json["shuffle"] = {{"seed", settings_.shuffle->seed.value},
                         {"drawn", settings_.shuffle->seed.drawn},
                         {"reshuffle", settings_.shuffle->reshuffle_each_epoch}};
    return json;
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return add_pack(inputs.front(), settings_, cell_, index_);
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    StagePtr input = compiler.samples(node.input(), first_id);
    const std::uint64_t room = index_->rows() * settings_.rules.length;
    compiler.note(fmt::format(
        "{}: {} tokens in {} rows, {:.2f} % padding{}", words().line, index_->tokens,
        index_->rows(),
        room == 0 ? 0.0
                  : 100 * static_cast<double>(room - index_->tokens) / static_cast<double>(room),
        index_->left_out == 0
            ? ""
            : fmt::format("; {} tokens of documents that are too long are left out",
                          index_->left_out)));
    StepShuffle key;
    if (settings_.shuffle)
      key = compiler.shuffle_key(settings_.shuffle->seed, settings_.shuffle->reshuffle_each_epoch);
    return std::make_unique<PackStage>(std::move(input), index_, settings_, key,
                                       compiler.next_source(first_id), words().line);
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    FlowPtr input = compiler.flow(node.input(), first_id);
    const IdSpace ids{{{first_id, compiler.next_source(first_id).ordinal}}};
    return rows_over<PackCursor>(std::move(input), node.spec, ids, settings_, ids, words().line);
  }
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override {
    if (node.stream) return OnSamples::promise(node, delivery);
    return {{{index_->rows(), 1}}};
  }
  [[nodiscard]] std::uint64_t id_space(const Node& node) const override {
    return node.stream ? kStreamIds : index_->rows();
  }

  [[nodiscard]] LengthRule length_rule() const override { return {settings_.options.field}; }
  [[nodiscard]] const std::shared_ptr<LengthCell>& length_cell() const override { return cell_; }
  [[nodiscard]] Dataset with_lengths(const Node&, const Dataset& input,
                                     std::shared_ptr<const Lengths> lengths) const override {
    if (settings_.options.how == PackHow::best_fit &&
        settings_.options.too_long == LongDocument::refuse)
      for (std::size_t i = 0; i < lengths->of.size(); ++i)
        if (lengths->of[i] + (settings_.rules.separated ? 1U : 0U) > settings_.rules.length)
          throw ConfigError(fmt::format("pack: document {} has {} tokens, a row has {}", i,
                                        lengths->of[i], settings_.rules.length),
                            {},
                            "use longer rows, or another policy for documents that are too long");
    return add_pack(input, settings_, cell_, index_of(std::move(lengths), settings_.rules));
  }

 private:
  const PackSettings settings_;
  const std::shared_ptr<LengthCell> cell_;
  const std::shared_ptr<const PackIndex> index_;  // null: lengths are not counted yet
};

void check_tokens(const Dataset& input, const PackOptions& options) {
  const ElementSpec& spec = input.element_spec();
  if (!spec.known) return;
  const auto check = [&](const std::string& path, const char* what) {
    const auto index = spec.find(path);
    if (!index)
      throw ConfigError(fmt::format("pack: no field \"{}\" in {}", path, spec.text()), {},
                        fmt::format("name the field with the {}", what));
    const FieldSpec& field = spec.fields[*index];
    if (field.shape.size() != 1 || field.dtype > Dtype::i64)
      throw ConfigError(fmt::format("pack: field \"{}\" is {}", path, field.text()), {},
                        fmt::format("the {} are whole numbers in one dimension", what));
  };
  check(options.field, "tokens");
  if (!options.mask.empty()) check(options.mask, "mask");
}

void check_pack(std::int64_t length, const PackOptions& options) {
  constexpr std::int64_t kLengthMax = std::numeric_limits<std::int32_t>::max();
  if (length < 1 || length > kLengthMax)
    throw ConfigError(fmt::format("pack: length must be from 1 to {}, got {}", kLengthMax, length));
  for (const std::int64_t token : {options.pad, options.separator.value_or(0)})
    if (token < 0 || token > kLengthMax)
      throw ConfigError(fmt::format("pack: {} is not a token: it must be an i32 from 0 on", token));
}

Dataset add_pack(const Dataset& input, const PackSettings& settings,
                 std::shared_ptr<LengthCell> cell, std::shared_ptr<const PackIndex> index) {
  refuse_if_batched(input, "pack", "put pack before batch");
  if (input.cardinality().is_endless() && !input.streamed())
    throw ConfigError("pack: an endless dataset cannot be packed", {}, "repeat after pack");
  check_tokens(input, settings.options);
  if (input.streamed()) {
    Node node = after(input, std::make_shared<const Pack>(settings, std::move(cell), nullptr));
    node.spec = packed_row_spec(settings);
    if (!input.cardinality().is_endless()) node.size = Cardinality::unknown();
    return make_node(std::move(node));
  }
  const Node& root = *input.node();
  if (const Node* found = find_node(root, [](const Node& node) { return node.facts().reshuffles; }))
    throw ConfigError(
        fmt::format("pack: after {} the order differs from pass to pass", describe_node(*found)),
        {}, "shuffle as the last step before pack, or after it");
  const auto rows = index ? Cardinality::of(index->rows()) : Cardinality::undecided();
  Node node =
      after(input, std::make_shared<const Pack>(settings, std::move(cell), std::move(index)));
  node.spec = packed_row_spec(settings);
  node.size = rows;
  return make_node(std::move(node));
}

}  // namespace

Dataset Dataset::pack(std::int64_t length, const PackOptions& options) const {
  check_pack(length, options);
  const PackSettings settings{{static_cast<std::uint64_t>(length), options.how, options.too_long,
                               options.separator.has_value()},
                              options,
                              whole_shuffle(*node_)};
  const auto cell = std::make_shared<LengthCell>();
  if (!settings.shuffle) return add_pack(*this, settings, cell, nullptr);
  return add_pack(Dataset(node_->inputs.front()), settings, cell, nullptr)
      .shuffle(*settings.shuffle);
}

Dataset parse_pack(const Parsed& parsed) {
  PackOptions options;
  options.how = static_cast<PackHow>(parsed.count("how") % kHow.size());
  options.too_long = static_cast<LongDocument>(parsed.count("too_long") % kTooLong.size());
  options.pad = parsed.number("pad");
  options.field = parsed.text("field");
  options.mask = parsed.text("mask");
  options.attention = static_cast<PackAttention>(parsed.count("attention") % 2);
  options.with_cu_seqlens = parsed.flag("cu_seqlens");
  if (parsed.arguments.contains("separator")) options.separator = parsed.number("separator");
  if (!parsed.arguments.contains("shuffle"))
    return parsed.input().pack(parsed.number("length"), options);
  check_pack(parsed.number("length"), options);
  const Json& json = parsed.at("shuffle");
  Seed seed(whole_number<std::uint64_t>(json.at("seed")));
  seed.drawn = json.at("drawn").get<bool>();
  const PackSettings settings{
      {parsed.count("length"), options.how, options.too_long, options.separator.has_value()},
      options,
      ShuffleOptions{seed, json.at("reshuffle").get<bool>()}};
  return add_pack(parsed.input(), settings, std::make_shared<LengthCell>(), nullptr);
}

}  // namespace penstock
