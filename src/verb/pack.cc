// Documents packed into rows of one length.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/cancelled.h"
#include "order/packing.h"
#include "order/permutation.h"
#include "plan/failures.h"
#include "sample/rows.h"
#include "sample/with_type.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"
#include "verb/lengths.h"
#include "verb/shuffle.h"

namespace penstock {
namespace {

constexpr std::uint64_t kBlockDocuments = 4096;
constexpr std::int64_t kNoLabel = -100;  // what losses ignore by default

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

struct PackSettings {
  PackRules rules;
  PackOptions options;
  std::optional<ShuffleOptions> shuffle;  // of the documents of a block
};

/// Calls `body(values)` with the whole numbers of a tensor; fails for other dtypes.
template <typename Body>
Result<void> with_numbers(const Tensor& tensor, Body body) {
  return with_type(tensor.dtype(), [&]<typename T>(T) -> Result<void> {
    if constexpr (std::is_integral_v<T>) {
      const auto* const values = reinterpret_cast<const T*>(tensor.raw().data());
      return body(std::span(values, tensor.raw().size() / sizeof(T)));
    } else {
      return Failure{fmt::format("tokens are whole numbers, not {}", dtype_name(tensor.dtype()))};
    }
  });
}

/// Copies tokens `first`, `first + 1`, ... of a document.
Result<void> copy_tokens(const Tensor& tokens, std::size_t first, std::span<std::int32_t> to) {
  return with_numbers(tokens, [&]<typename T>(std::span<const T> values) -> Result<void> {
    values = values.subspan(first, to.size());
    bool fits = true;
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = static_cast<std::int32_t>(values[i]);
      fits = fits && to[i] >= 0 && static_cast<T>(to[i]) == values[i];
    }
    if (fits) return {};
    std::size_t bad = 0;
    while (to[bad] >= 0 && static_cast<T>(to[bad]) == values[bad]) ++bad;
    return Failure{
        fmt::format("token {} is {}, which is not an i32 from 0 on", first + bad, values[bad])};
  });
}

ElementSpec row_spec(const PackSettings& settings) {
  const Shape shape{static_cast<std::int64_t>(settings.rules.length)};
  std::vector<FieldSpec> fields{{"document", Dtype::i32, shape},
                                {"labels", Dtype::i64, shape},
                                {"positions", Dtype::i32, shape},
                                {"tokens", Dtype::i32, shape}};
  if (settings.options.with_cu_seqlens) fields.push_back({"cu_seqlens", Dtype::i32, {kUnknown}});
  return ElementSpec::dict(std::move(fields));
}

/// The memory of one packed row.
struct PackedRow {
  std::span<std::int32_t> document;
  std::span<std::int64_t> labels;
  std::span<std::int32_t> positions;
  std::span<std::int32_t> tokens;
};

class PackStage final : public Stage {
 public:
  PackStage(StagePtr input, std::shared_ptr<const PackIndex> index, PackSettings settings,
            StepShuffle key, SourcePlace place, std::string title)
      : Stage(row_spec(settings), IdSpace{{{place.first_id, place.ordinal, nullptr}}}),
        input_(std::move(input)),
        index_(std::move(index)),
        settings_(std::move(settings)),
        key_(key),
        first_id_(place.first_id),
        title_(std::move(title)) {}

  void identify(const Ask& ask, std::uint64_t* ids, const Context&) const override {
    for (std::size_t i = 0; i < ask.positions.size(); ++i) ids[i] = first_id_ + ask.positions[i];
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    identify(ask, out.identity.sample_id, context);
    if (out.identity.occurrence != nullptr)
      std::fill_n(out.identity.occurrence, out.rows, ask.turn.occurrence());
    return for_good_rows(out, ids(), [&](std::size_t first, std::size_t rows) -> Result<void> {
      for (std::size_t row = first; row < first + rows; ++row) {
        if (!context.at_sample(out.identity.sample_id[row])) return cancelled(row - first);
        auto done = write(ask.turn, ask.positions[row], out, row, context);
        if (!done) {
          done.failure().row = row - first;
          if (done.failure().where.op.empty()) done.failure().where.op = title_;
          return done;
        }
      }
      return {};
    });
  }

 private:
  Result<void> write(Turn turn, std::uint64_t number, const BlockView& out, std::size_t row,
                     const Context& context) const {
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

    const bool with_ends = settings_.options.with_cu_seqlens;
    const std::size_t at = with_ends ? 1 : 0;  // cu_seqlens is the first field
    const auto column = [&]<typename T>(std::size_t field, T) {
      const Column& target = out.columns[field];
      return std::span(reinterpret_cast<T*>(target.data + row * target.row_bytes),
                       settings_.rules.length);
    };
    PackedRow to{column(at, std::int32_t{}), column(at + 1, std::int64_t{}),
                 column(at + 2, std::int32_t{}), column(at + 3, std::int32_t{})};
    std::vector<std::int32_t> ends{0};
    std::size_t filled = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (identity.failed[i] != kRowGood)
        return at_document({"a filter masks this document, which cannot be left out of its row",
                            {},
                            "use select() instead of filter() with mask"},
                           documents.view(), i);
      const Sample document = read_row(documents.view(), i);
      const std::uint32_t length = index_->block(block)[parts[i].document];
      Result<void> done;
      try {
        done = write_part(parts[i], document, length, static_cast<std::int32_t>(i), to);
      } catch (const ConfigError& error) {  // there is no such field
        done = Failure{error.message(), {}, error.remedy()};
      }
      if (!done) return at_document(std::move(done.failure()), documents.view(), i);
      filled += parts[i].count;
      ends.push_back(static_cast<std::int32_t>(filled));
    }
    std::ranges::fill(to.document.subspan(filled), -1);
    std::ranges::fill(to.labels.subspan(filled), kNoLabel);
    std::ranges::fill(to.positions.subspan(filled), 0);
    std::ranges::fill(to.tokens.subspan(filled), static_cast<std::int32_t>(settings_.options.pad));
    if (with_ends) out.columns[0].tensors[row] = Tensor::of(ends);
    return {};
  }

  [[nodiscard]] Failure at_document(Failure failure, const BlockView& documents,
                                    std::size_t document) const {
    failure.row = document;
    return penstock::at_sample(std::move(failure), input_->ids(), documents);
  }

  Result<void> write_part(const DocumentPart& part, const Sample& document, std::uint32_t length,
                          std::int32_t number, const PackedRow& to) const {
    const Tensor& tokens = document[settings_.options.field];
    if (is_variable(tokens.dtype()) || tokens.shape().size() != 1)
      return Failure{fmt::format("field \"{}\" is {}{}", settings_.options.field,
                                 dtype_name(tokens.dtype()), shape_text(tokens.shape())),
                     {},
                     "the tokens are whole numbers in one dimension"};
    if (tokens.shape().front() != static_cast<std::int64_t>(length))
      return Failure{fmt::format("a document is {}{}; it had {} tokens when lengths were counted",
                                 dtype_name(tokens.dtype()), shape_text(tokens.shape()), length),
                     {},
                     "documents must have the same length each time"};
    const Tensor* mask = nullptr;
    if (!settings_.options.mask.empty()) {
      mask = &document[settings_.options.mask];
      if (mask->shape() != tokens.shape())
        return Failure{
            fmt::format("field \"{}\" is {} and the tokens are {}", settings_.options.mask,
                        shape_text(mask->shape()), shape_text(tokens.shape())),
            {},
            "the mask has one number per token"};
    }
    const auto at = [&](auto all) { return all.subspan(part.at, part.count); };
    const std::span<std::int32_t> own = at(to.tokens);
    const std::size_t end = part.first + part.count;  // may include the separator
    if (auto done = copy_tokens(tokens, part.first,
                                own.first(std::min<std::size_t>(end, length) - part.first));
        !done)
      return done;
    if (end > length) own.back() = separator();
    std::iota(at(to.positions).begin(), at(to.positions).end(), 0);
    std::ranges::fill(at(to.document), number);

    const std::span<std::int64_t> labels = at(to.labels);
    std::copy(own.begin() + 1, own.end(), labels.begin());
    labels.back() = kNoLabel;
    if (end < length) {  // the document continues in another row
      std::int32_t next = 0;
      if (auto done = copy_tokens(tokens, end, {&next, 1}); !done) return done;
      labels.back() = next;
    } else if (end == length && settings_.rules.separated) {
      labels.back() = separator();
    }
    return mask == nullptr ? Result<void>() : hide(*mask, part.first + 1, labels);
  }

  [[nodiscard]] std::int32_t separator() const {
    return static_cast<std::int32_t>(*settings_.options.separator);
  }

  /// Labels are tokens `first`, `first + 1`, ...; a separator is never hidden.
  static Result<void> hide(const Tensor& mask, std::size_t first, std::span<std::int64_t> labels) {
    return with_numbers(mask, [&]<typename T>(std::span<const T> values) -> Result<void> {
      for (std::size_t i = 0; i < labels.size() && first + i < values.size(); ++i)
        if (values[first + i] == 0) labels[i] = kNoLabel;
      return {};
    });
  }

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

  const StagePtr input_;
  const std::shared_ptr<const PackIndex> index_;
  const PackSettings settings_;
  const StepShuffle key_;
  const std::uint64_t first_id_;
  const std::string title_;
  mutable Mutex mutex_;
  mutable std::map<BlockKey, std::shared_ptr<const PackedBlock>> kept_ PENSTOCK_GUARDED_BY(mutex_);
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
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.reshuffles = settings_.shuffle && settings_.shuffle->reshuffle_each_epoch,
            .draws_seed = settings_.shuffle && settings_.shuffle->seed.drawn,
            .unresolved = index_ == nullptr};
  }
  void add_values(const Node&, Digest& digest) const override {
    digest.add(fmt::format("pad {} mask {} field {}", settings_.options.pad, settings_.options.mask,
                           settings_.options.field));
  }
  [[nodiscard]] Json arguments() const override {
    const PackOptions& own = settings_.options;
    Json json{{"length", settings_.rules.length},
              {"how", static_cast<unsigned>(own.how)},
              {"too_long", static_cast<unsigned>(own.too_long)},
              {"pad", own.pad},
              {"field", own.field},
              {"mask", own.mask},
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
  [[nodiscard]] Promise promise(const Node&, const Delivery&) const override {
    return {{{index_->rows(), 1}}};
  }
  [[nodiscard]] std::uint64_t id_space(const Node&) const override { return index_->rows(); }

  [[nodiscard]] const std::string& length_field() const override { return settings_.options.field; }
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

Dataset add_pack(const Dataset& input, const PackSettings& settings,
                 std::shared_ptr<LengthCell> cell, std::shared_ptr<const PackIndex> index) {
  refuse_if_batched(input, "pack", "put pack before batch");
  if (input.streamed())
    throw ConfigError("pack: a stream has no numbered documents", {},
                      "pack indexed data: from_ragged, from_megatron, from_index or arrays");
  if (input.cardinality().is_endless())
    throw ConfigError("pack: an endless dataset cannot be packed", {}, "repeat after pack");
  check_tokens(input, settings.options);
  const Node& root = *input.node();
  if (const Node* found = find_node(root, [](const Node& node) { return node.facts().reshuffles; }))
    throw ConfigError(
        fmt::format("pack: after {} the order differs from pass to pass", describe_node(*found)),
        {}, "shuffle as the last step before pack, or after it");
  const auto rows = index ? Cardinality::of(index->rows()) : Cardinality::undecided();
  Node node =
      after(input, std::make_shared<const Pack>(settings, std::move(cell), std::move(index)));
  node.spec = row_spec(settings);
  node.size = rows;
  return make_node(std::move(node));
}

}  // namespace

Dataset Dataset::pack(std::int64_t length, const PackOptions& options) const {
  constexpr std::int64_t kLengthMax = std::numeric_limits<std::int32_t>::max();
  if (length < 1 || length > kLengthMax)
    throw ConfigError(fmt::format("pack: length must be from 1 to {}, got {}", kLengthMax, length));
  for (const std::int64_t token : {options.pad, options.separator.value_or(0)})
    if (token < 0 || token > kLengthMax)
      throw ConfigError(fmt::format("pack: {} is not a token: it must be an i32 from 0 on", token));
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
  options.with_cu_seqlens = parsed.flag("cu_seqlens");
  if (parsed.arguments.contains("separator")) options.separator = parsed.number("separator");
  if (!parsed.arguments.contains("shuffle"))
    return parsed.input().pack(parsed.number("length"), options);
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
