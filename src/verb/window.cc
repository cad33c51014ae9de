// Windows of consecutive samples.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sample/rows.h"
#include "verb/catalogue.h"
#include "verb/grouped_stage.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

struct WindowRule {
  std::uint64_t size = 1;  // samples of a window
  std::uint64_t shift = 1;
  std::uint64_t stride = 1;
  bool drop_remainder = true;

  /// Samples from the first to after the last of a full window.
  [[nodiscard]] std::uint64_t span() const { return (size - 1) * stride + 1; }
  [[nodiscard]] std::uint64_t count(std::uint64_t samples) const {
    if (drop_remainder) return samples < span() ? 0 : (samples - span()) / shift + 1;
    return samples == 0 ? 0 : (samples - 1) / shift + 1;
  }
  /// Samples of window `number`.
  [[nodiscard]] std::uint64_t size_of(std::uint64_t number, std::uint64_t samples) const {
    return std::min(size, (samples - number * shift - 1) / stride + 1);
  }
};

/// The rows of `block`, which have one size, as one sample.
Sample stacked(const BlockView& block) {
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < block.columns.size(); ++i) {
    Shape shape = block.spec->fields[i].shape;
    shape.insert(shape.begin(), static_cast<std::int64_t>(block.rows));
    leaves.push_back(
        Tensor::copy(block.spec->fields[i].dtype, std::move(shape),
                     {block.columns[i].data, block.rows * block.columns[i].row_bytes}));
  }
  return Sample::assemble(block.spec->structure, std::move(leaves));
}

class WindowStage final : public GroupedStage {
 public:
  WindowStage(StagePtr input, std::uint64_t samples, const WindowRule& rule, ElementSpec spec,
              SourcePlace place, std::string title)
      : GroupedStage(std::move(spec), std::move(input), place, std::move(title)),
        samples_(samples),
        rule_(rule) {}

  void collect_reads(const Ask& ask, const Context& context,
                     std::vector<PlannedRead>& reads) const override {
    const Scratch::Frame frame(context.scratch);
    for (const std::uint64_t number : ask.positions)
      input_->collect_reads({ask.turn, samples_of(number, context)}, context, reads);
  }

 protected:
  Result<void> write(Turn turn, std::uint64_t number, const BlockView& out, std::size_t row,
                     const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    const auto positions = samples_of(number, context);
    Identity identity{context.scratch.array<std::uint64_t>(positions.size()),
                      context.scratch.array<std::uint64_t>(positions.size()),
                      context.scratch.array<std::uint8_t>(positions.size())};
    std::fill_n(identity.failed, positions.size(), kRowGood);
    if (rule_.drop_remainder) {
      // The samples of a window follow each other in the memory of its row.
      auto* const columns = context.scratch.array<Column>(out.columns.size());
      for (std::size_t i = 0; i < out.columns.size(); ++i) {
        const std::size_t row_bytes = out.columns[i].row_bytes;
        columns[i] = {out.columns[i].data + row * row_bytes, row_bytes / rule_.size, nullptr,
                      nullptr};
      }
      BlockView inside;
      inside.rows = positions.size();
      inside.spec = &input_->spec();
      inside.columns = {columns, out.columns.size()};
      inside.identity = identity;
      if (auto done = input_->produce({turn, positions}, inside, context); !done) return done;
      return refuse_masked(inside);
    }
    const ScratchBlock block(input_->spec(), positions.size(), context.scratch, identity);
    if (auto done = input_->produce({turn, positions}, block.view(), context); !done) return done;
    if (auto done = refuse_masked(block.view()); !done) return done;
    (void)write_row(out, row, stacked(block.view()));
    return {};
  }

 private:
  [[nodiscard]] std::span<const std::uint64_t> samples_of(std::uint64_t number,
                                                          const Context& context) const {
    const std::uint64_t size = rule_.size_of(number, samples_);
    std::uint64_t* const positions = context.scratch.array<std::uint64_t>(size);
    for (std::uint64_t i = 0; i < size; ++i) positions[i] = number * rule_.shift + i * rule_.stride;
    return {positions, size};
  }

  const std::uint64_t samples_;
  const WindowRule rule_;
};

class WindowVerb final : public OnSamples {
 public:
  explicit WindowVerb(const WindowRule& rule) : rule_(rule) {}
  [[nodiscard]] Words words() const override {
    return {"window", fmt::format("window({}, shift={}{}{})", rule_.size, rule_.shift,
                                  rule_.stride == 1 ? "" : fmt::format(", stride={}", rule_.stride),
                                  rule_.drop_remainder ? "" : ", with the remainder")};
  }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.copies = rule_.shift < rule_.span()};
  }
  [[nodiscard]] Json arguments() const override {
    return {{"size", rule_.size},
            {"shift", rule_.shift},
            {"stride", rule_.stride},
            {"drop_remainder", rule_.drop_remainder}};
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().window(rule_.size, {rule_.shift, rule_.stride, rule_.drop_remainder});
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    StagePtr input = compiler.samples(node.input(), first_id);
    return std::make_unique<WindowStage>(std::move(input), node.input().size.count(), rule_,
                                         node.spec, compiler.next_source(first_id), words().line);
  }
  [[nodiscard]] Promise promise(const Node& node, const Delivery&) const override {
    return {{{node.size.count(), 1}}};
  }
  [[nodiscard]] std::uint64_t id_space(const Node& node) const override {
    return node.size.is_counted() ? node.size.count() : 0;
  }

 private:
  const WindowRule rule_;
};

ElementSpec window_spec(const Dataset& input, const WindowRule& rule) {
  ElementSpec spec = input.element_spec();
  if (!spec.known)
    throw ConfigError("window: the fields of the samples are unknown before running", {},
                      "declare .spec on the function before it");
  for (FieldSpec& field : spec.fields) {
    if (!is_dense(field))
      throw ConfigError(fmt::format("window: field \"{}\" ({}) differs in size from sample to "
                                    "sample",
                                    field.path, field.text()),
                        {}, "drop it, or give it one size, before window");
    field.shape.insert(field.shape.begin(),
                       rule.drop_remainder ? static_cast<std::int64_t>(rule.size) : kUnknown);
  }
  return spec;
}

}  // namespace

Dataset Dataset::window(std::uint64_t size, const WindowOptions& options) const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  const WindowRule rule{size, options.shift.value_or(size), options.stride, options.drop_remainder};
  for (const auto& [name, value] : {std::pair("size", rule.size), std::pair("shift", rule.shift),
                                    std::pair("stride", rule.stride)})
    if (value < 1 || value > kMost)
      throw ConfigError(fmt::format("window: {} must be from 1 to {}, got {}", name, kMost, value));
  refuse_if_batched(*this, "window", "put window before batch");
  if (streamed())
    throw ConfigError("window: a stream has no numbered samples", {},
                      "batch(n, {.drop_remainder = true}) groups the samples of a stream");
  if (cardinality().is_endless())
    throw ConfigError("window: an endless dataset has no last window", {}, "repeat after window");
  Node node = after(*this, std::make_shared<const WindowVerb>(rule));
  node.spec = window_spec(*this, rule);
  if (cardinality().is_counted()) node.size = Cardinality::of(rule.count(cardinality().count()));
  return make_node(std::move(node));
}

Dataset parse_window(const Parsed& parsed) {
  return parsed.input().window(parsed.count("size"), {parsed.count("shift"), parsed.count("stride"),
                                                      parsed.flag("drop_remainder")});
}

}  // namespace penstock
