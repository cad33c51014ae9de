#include "verb/batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fault.h"
#include "graph/tail.h"
#include "plan/flow_kinds.h"
#include "plan/flows.h"
#include "sample/rows.h"
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

class BatchVerb final : public Verb {
 public:
  BatchVerb(std::uint64_t size, std::optional<Tail> tail) : size_(size), tail_(tail) {}
  [[nodiscard]] Words words() const override { return {"batch", line(tail_)}; }
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
  void add_values(const Node&, Digest&) const override {}
  [[nodiscard]] Json arguments() const override {
    Json arguments{{"size", size_}};
    if (tail_) arguments["tail"] = tail_name(*tail_);
    return arguments;
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    BatchOptions options;
    options.tail = tail_;
    return inputs.front().batch(static_cast<std::int64_t>(size_), options);
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
    chains.push_back({compiler.samples(node.input(), first_id), {}});
    return chains;
  }
  [[nodiscard]] StepFlowPtr step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                                      std::optional<Tail> tail,
                                      std::vector<LeafProgram>& chains) const override {
    if (const auto warning = batch_of_batches(node.spec)) compiler.warn(*warning);
    std::vector<Deferred> deferred;
    FlowPtr input = compiler.flow_before_maps(node.input(), first_id, deferred);
    StagePtr stage = pulled_stage(input->spec(), input->ids());
    for (Deferred& map : deferred)
      stage = map_stage(std::move(stage), map.op, map.spec, std::move(map.place));
    const StreamBatch batch{static_cast<std::uint32_t>(chains.size()), size_,
                            stream_tail(node, tail)};
    chains.push_back({std::move(stage), {}});
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
  [[noreturn]] static std::nullptr_t unreachable() {
    throw InternalError("batch: steps were requested as samples");
  }

  const std::uint64_t size_;
  const std::optional<Tail> tail_;
};

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

Dataset Dataset::batch(std::int64_t size, const BatchOptions& options) const {
  if (size < 1) throw ConfigError(fmt::format("batch: size must be positive, got {}", size));
  refuse_if_batched(*this, "batch", "unbatch() first to form batches of another size");
  std::optional<Tail> tail = options.tail;
  if (options.drop_remainder) {
    if (tail && *tail != Tail::drop)
      throw ConfigError("batch: drop_remainder and another tail policy are both set");
    tail = Tail::drop;
  }
  for (const FieldSpec& field : element_spec().fields)
    if (!is_variable(field.dtype) && !shape_known(field.shape))
      throw ConfigError(fmt::format("batch: the rows of field \"{}\" ({}) may differ in shape",
                                    field.path, field.text()),
                        {}, "map them to one shape first");
  const auto verb = std::make_shared<const BatchVerb>(static_cast<std::uint64_t>(size), tail);
  Node node = after(*this, verb);
  node.batched = true;
  if (cardinality().is_counted())
    node.size = Cardinality::of(verb->of(cardinality(), std::nullopt).steps());
  return make_counted("batch", std::move(node));
}

Dataset parse_batch(const Parsed& parsed) {
  BatchOptions options;
  if (parsed.arguments.contains("tail")) options.tail = tail_parsed(parsed.text("tail"));
  return parsed.input().batch(parsed.number("size"), options);
}

}  // namespace penstock
