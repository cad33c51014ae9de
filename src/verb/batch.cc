#include "verb/batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fault.h"
#include "graph/tail.h"
#include "plan/flow_kinds.h"
#include "plan/flows.h"
#include "sample/packed_field.h"
#include "sample/rows.h"
#include "verb/bucket_stream.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

struct StreamBatch {
  std::uint32_t leaf = 0;
  std::uint64_t size = 1;
  Tail tail = Tail::short_;  // or drop, or pad
};

class BatchCursor final : public CursorOver<StepCursor, Cursor> {
 public:
  BatchCursor(const Flow& input, Turn turn, const StreamBatch& batch)
      : CursorOver(input.open(turn)), input_flow_(input), batch_(batch), pass_(turn.pass) {}

  Result<bool> pull(PulledStep& step, Pulling& pulling) override {
    if (!step.buffer || &step.buffer->spec() != &input_flow_.spec())
      step.buffer = std::make_unique<RowBuffer>(input_flow_.spec());
    std::size_t rows = 0;
    // A batch size may mean "everything", so memory grows as rows arrive.
    constexpr std::size_t kAtOnce = 65536;
    while (rows < batch_.size && ended_ == 0) {
      const std::size_t wanted = std::min<std::uint64_t>(batch_.size - rows, kAtOnce);
      step.buffer->reserve(rows + wanted);
      auto got = input_->pull(step.buffer->rows(rows, wanted), pulling);
      if (!got) return std::move(got.failure());
      rows += *got;
      ended_ = *got < wanted ? 1 : 0;
    }
    if (rows == 0 || (rows < batch_.size && batch_.tail == Tail::drop)) return false;
    step.padded_to = batch_.tail == Tail::pad ? batch_.size : 0;
    step.leaf = batch_.leaf;
    step.pass = pass_;
    step.rows = rows;
    return true;
  }

 private:
  std::span<std::uint64_t> place() override { return {&ended_, 1}; }

  const Flow& input_flow_;
  const StreamBatch& batch_;
  const std::uint64_t pass_;
  std::uint64_t ended_ = 0;  // 1 at the end
};

Json written(const FieldPadding& rule) {
  Json json{{"value", rule.value}};
  if (rule.side == PadSide::left) json["side"] = "left";
  if (rule.length) json["length"] = *rule.length;
  if (rule.multiple_of != 1) json["multiple_of"] = rule.multiple_of;
  return json;
}

class BatchVerb final : public Verb {
 public:
  BatchVerb(std::uint64_t size, std::optional<Tail> tail, std::shared_ptr<const Padding> padding)
      : size_(size), tail_(tail), padding_(std::move(padding)) {}
  [[nodiscard]] Words words() const override {
    if (!padding_) return {"batch", line(tail_)};
    return {"padded_batch", fmt::format("padded_{}", line(tail_))};
  }
  [[nodiscard]] Facts facts(const Node& node) const override {
    const Groups own = *groups(node, std::nullopt);
    return {.is_leaf = true, .copies = own.tail == Tail::wrap && !own.divides()};
  }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    add_order_of_inputs(node, counting, lines);
    if (!counting.batch_counts) return;
    std::optional<Tail> tail = tail_ ? tail_ : counting.tail;
    if (tail && !changes_steps(*tail)) tail.reset();
    lines.push_back(line(tail));
  }
  void add_values(const Node&, Digest& digest) const override {
    if (padding_) digest.add(padding_written(*padding_).dump());
  }
  [[nodiscard]] Json arguments() const override {
    Json arguments{{"size", size_}};
    if (tail_) arguments["tail"] = tail_name(*tail_);
    if (padding_) arguments["padding"] = padding_written(*padding_);
    return arguments;
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    const auto size = static_cast<std::int64_t>(size_);
    if (padding_) return inputs.front().padded_batch(size, {.padding = *padding_, .tail = tail_});
    BatchOptions options;
    options.tail = tail_;
    return inputs.front().batch(size, options);
  }
  [[nodiscard]] StagePtr samples(Compiler&, const Node&, std::uint64_t) const override {
    return unreachable();
  }
  [[nodiscard]] FlowPtr flow(Compiler&, const Node&, std::uint64_t) const override {
    return unreachable();
  }
  [[nodiscard]] std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                std::uint64_t first_id) const override {
    std::vector<LeafProgram> chains;
    if (groups(node, compiler.options().tail)->tail == Tail::pad) warn_of_labels(compiler, node);
    chains.push_back({compiler.samples(node.input(), first_id), {}});
    chains.back().padding = padding_;
    return chains;
  }
  [[nodiscard]] StepFlowPtr step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                                      std::optional<Tail> tail,
                                      std::vector<LeafProgram>& chains) const override {
    if (const auto warning = batch_of_batches(node.spec)) compiler.warn(*warning);
    if (stream_tail(node, tail) == Tail::pad) warn_of_labels(compiler, node);
    std::vector<Deferred> deferred;
    FlowPtr input = compiler.flow_before_maps(node.input(), first_id, deferred);
    StagePtr stage = pulled_stage(input->spec(), input->ids());
    for (Deferred& map : deferred)
      stage = map_stage(std::move(stage), map.op, map.spec, std::move(map.place));
    const StreamBatch batch{static_cast<std::uint32_t>(chains.size()), size_,
                            stream_tail(node, tail)};
    chains.push_back({std::move(stage), {}});
    chains.back().padding = padding_;
    return steps_over<BatchCursor>(std::move(input), batch);
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    return walk.leaf(node, *groups(node, walk.tail));
  }
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override {
    Promise promise = promise_of(node.input(), {delivery.tail});
    const Groups own = *groups(node, delivery.tail);
    const std::uint64_t delivered = own.delivered();
    if (delivered < own.count) promise.dropped += own.count - delivered;
    if (delivered > own.count && delivery.unbatched) {
      promise.multiply((delivered + own.count - 1) / own.count);
      promise.all = false;
    }
    return promise;
  }
  [[nodiscard]] std::optional<Groups> groups(const Node& node,
                                             std::optional<Tail> tail) const override {
    return of(node.input().size, tail);
  }

  [[nodiscard]] const Padding* padding() const { return padding_.get(); }
  [[nodiscard]] Groups of(const Cardinality& samples, std::optional<Tail> tail) const {
    const Tail unnamed = PENSTOCK_OFF("tail.short") ? Tail::drop : Tail::short_;
    const Tail policy = tail_.value_or(tail.value_or(unnamed));
    (void)tail_name(policy);  // throws for a value that is no policy
    return {samples.is_counted() ? samples.count() : kEndless, size_, policy};
  }

 private:
  [[nodiscard]] std::string line(std::optional<Tail> tail) const {
    return fmt::format("batch({}{})", size_,
                       tail ? fmt::format(", tail={}", tail_name(*tail)) : "");
  }
  /// A loss that ignores weights would train on the empty rows.
  static void warn_of_labels(Compiler& compiler, const Node& node) {
    if (find_node(node.input(), [](const Node& at) { return at.verb->words().word == "pack"; }))
      compiler.warn(
          "tail=pad adds rows of zeros to packed data, with label 0 instead of -100; use "
          "tail=even, or multiply the loss of each row by its weight");
  }
  [[noreturn]] static std::nullptr_t unreachable() {
    throw InternalError("batch: steps were requested as samples");
  }

  const std::uint64_t size_;
  const std::optional<Tail> tail_;
  const std::shared_ptr<const Padding> padding_;  // null: rows keep their sizes
};

Dataset add_batch(const Dataset& input, std::int64_t size, const BatchOptions& options,
                  std::shared_ptr<const Padding> padding) {
  const char* const word = padding ? "padded_batch" : "batch";
  if (size < 1) throw ConfigError(fmt::format("{}: size must be positive, got {}", word, size));
  refuse_if_batched(input, word, "unbatch() first to form batches of another size");
  std::optional<Tail> tail = options.tail;
  if (options.drop_remainder) {
    if (tail && *tail != Tail::drop)
      throw ConfigError(
          fmt::format("{}: drop_remainder and another tail policy are both set", word));
    tail = Tail::drop;
  }
  const auto verb =
      std::make_shared<const BatchVerb>(static_cast<std::uint64_t>(size), tail, std::move(padding));
  Node node = after(input, verb);
  node.batched = true;
  if (input.cardinality().is_counted())
    node.size = Cardinality::of(verb->of(input.cardinality(), std::nullopt).steps());
  return make_counted(word, std::move(node));
}

FieldPadding field_padding_parsed(const Json& rule) {
  FieldPadding parsed;
  parsed.value = rule.at("value").get<double>();
  parsed.side = rule.value("side", "right") == "left" ? PadSide::left : PadSide::right;
  if (rule.contains("length")) parsed.length = rule.at("length").get<std::int64_t>();
  parsed.multiple_of = rule.value("multiple_of", std::int64_t{1});
  return parsed;
}

}  // namespace

std::optional<std::string> batch_of_batches(const ElementSpec& element) {
  if (!element.known || element.fields.size() < 2) return std::nullopt;
  const Shape& first = element.fields.front().shape;
  bool ranks_differ = false;
  for (const FieldSpec& field : element.fields) {
    if (field.shape.empty() || field.shape.front() != first.front() || first.front() < 2)
      return std::nullopt;
    ranks_differ = ranks_differ || field.shape.size() != first.size();
  }
  if (!ranks_differ) return std::nullopt;
  return fmt::format(
      "batch: each element of the stream ({}) looks like a batch of {} rows already; if it is one, "
      "unbatch() before batch()",
      element.text(), first.front());
}

const Padding* padding_of(const Node& leaf) {
  const auto* const batch = leaf.as<BatchVerb>();
  return batch == nullptr ? stream_padding_of(leaf) : batch->padding();
}

Json padding_written(const Padding& padding) {
  Json json{{"fields", Json::object()}};
  if (!padding.only_named) json["all"] = written(padding.all);
  for (const auto& [path, rule] : padding.fields) json["fields"][path] = written(rule);
  return json;
}

Padding padding_parsed(const Json& padding) {
  Padding parsed;
  parsed.only_named = !padding.contains("all");
  if (!parsed.only_named) parsed.all = field_padding_parsed(padding.at("all"));
  for (const auto& [path, rule] : padding.at("fields").items())
    parsed.fields.emplace_back(path, field_padding_parsed(rule));
  return parsed;
}

void check_padding(const char* word, const Padding& padding, const ElementSpec& spec) {
  static constexpr std::int64_t kLengthMax = std::int64_t{1} << 32;
  const auto check = [word](const std::string& name, const FieldPadding& rule) {
    if (rule.multiple_of < 1)
      throw ConfigError(
          fmt::format("{}: multiple_of must be positive, got {}{}", word, rule.multiple_of, name));
    if (const std::int64_t most = std::max(rule.multiple_of, rule.length.value_or(0));
        most > kLengthMax)
      throw ConfigError(fmt::format("{}: rows of length {}{} are too long", word, most, name), {},
                        fmt::format("pad to at most {}", kLengthMax));
    if (rule.length && *rule.length < 0)
      throw ConfigError(
          fmt::format("{}: length must not be negative, got {}{}", word, *rule.length, name));
  };
  check("", padding.all);
  for (const auto& [path, rule] : padding.fields) {
    check(fmt::format(" for field \"{}\"", path), rule);
    if (!spec.known) continue;
    const auto index = spec.find(path);
    if (!index)
      throw ConfigError(fmt::format("{}: no field \"{}\" in {}", word, path, spec.text()));
    const FieldSpec& field = spec.fields[*index];
    if (is_variable(field.dtype) || field.shape.empty())
      throw ConfigError(
          fmt::format("{}: field \"{}\" ({}) has no length to pad", word, path, field.text()));
  }
  for (const FieldSpec& field : spec.fields) {
    const FieldPadding* const rule = padding.of(field.path);
    if (rule == nullptr || is_dense(field) || is_variable(field.dtype)) continue;
    if (!value_bytes(rule->value, field.dtype))
      throw ConfigError(fmt::format("{}: {} cannot be a value of field \"{}\" ({})", word,
                                    rule->value, field.path, field.text()),
                        {}, "pad with a value of its dtype, or name a value for each field");
  }
}

Dataset Dataset::batch(std::int64_t size, const BatchOptions& options) const {
  return add_batch(*this, size, options, nullptr);
}

Dataset Dataset::padded_batch(std::int64_t size, const PaddedBatchOptions& options) const {
  check_padding("padded_batch", options.padding, element_spec());
  return add_batch(*this, size, {options.tail, options.drop_remainder},
                   std::make_shared<const Padding>(options.padding));
}

Dataset parse_batch(const Parsed& parsed) {
  BatchOptions options;
  if (parsed.arguments.contains("tail")) options.tail = tail_parsed(parsed.text("tail"));
  return parsed.input().batch(parsed.number("size"), options);
}

Dataset parse_padded_batch(const Parsed& parsed) {
  PaddedBatchOptions options;
  if (parsed.arguments.contains("tail")) options.tail = tail_parsed(parsed.text("tail"));
  options.padding = padding_parsed(parsed.arguments.at("padding"));
  return parsed.input().padded_batch(parsed.number("size"), options);
}

}  // namespace penstock
