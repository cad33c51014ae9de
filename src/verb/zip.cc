#include <fmt/format.h>

#include <algorithm>

#include "plan/flow_kinds.h"
#include "sample/rows.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"
#include "verb/zip_stage.h"

namespace penstock {
namespace {

/// Tuples of its parts; with `numbered` the first part is the position.
class ZipStage final : public Stage {
 public:
  ZipStage(std::vector<StagePtr> parts, bool numbered, const ElementSpec& spec)
      : Stage(spec, parts.front()->ids()), parts_(std::move(parts)), numbered_(numbered) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const override {
    parts_.front()->identify(ask, ids, context);
  }
  void collect_reads(const Ask& ask, const Context& context,
                     std::vector<PlannedRead>& reads) const override {
    for (const StagePtr& part : parts_) part->collect_reads(ask, context, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    return spec().known ? run_columns(ask, out, context) : run_samples(ask, out, context);
  }

 private:
  /// Rows take their identity from the first part; the other parts use a separate one.
  static Identity identity_for(std::size_t part, const BlockView& out, const Context& context) {
    if (part == 0) return out.identity;
    return {context.scratch.array<std::uint64_t>(out.rows),
            context.scratch.array<std::uint64_t>(out.rows), out.identity.failed,
            out.identity.failures};
  }

  Result<void> run_columns(const Ask& ask, const BlockView& out, const Context& context) const {
    std::size_t column = 0;
    if (numbered_) {
      auto* const numbers = reinterpret_cast<std::uint64_t*>(out.columns[column++].data);
      std::ranges::copy(ask.positions, numbers);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      BlockView part;
      part.rows = out.rows;
      part.spec = &parts_[i]->spec();
      part.columns = out.columns.subspan(column, part.spec->fields.size());
      part.identity = identity_for(i, out, context);
      if (auto done = parts_[i]->produce(ask, part, context); !done) return done;
      column += part.spec->fields.size();
    }
    return {};
  }

  Result<void> run_samples(const Ask& ask, const BlockView& out, const Context& context) const {
    std::vector<std::unique_ptr<ScratchBlock>> blocks;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      blocks.push_back(std::make_unique<ScratchBlock>(parts_[i]->spec(), out.rows, context.scratch,
                                                      identity_for(i, out, context)));
      if (auto done = parts_[i]->produce(ask, blocks.back()->view(), context); !done) return done;
    }
    for (std::size_t row = 0; row < out.rows; ++row) {
      if (out.identity.failed != nullptr && out.identity.failed[row] != 0) continue;
      std::vector<Sample> tuple;
      if (numbered_)
        tuple.emplace_back(Tensor::scalar(static_cast<std::int64_t>(ask.positions[row])));
      for (const auto& block : blocks) tuple.push_back(read_row(block->view(), row));
      if (const auto wrong = write_row(out, row, Sample::tuple(std::move(tuple))))
        return at_sample(Failure{*wrong, {}, {}, nullptr, row}, ids(), out);
    }
    return {};
  }

  std::vector<StagePtr> parts_;
  bool numbered_;
};

class ZipFlow final : public Flow {
 public:
  ZipFlow(std::vector<FlowPtr> parts, const ElementSpec& spec, bool strict)
      : Flow(spec, parts.front()->ids()), parts_(std::move(parts)), strict_(strict) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

 private:
  friend class ZipCursor;
  const std::vector<FlowPtr> parts_;
  const bool strict_;
};

class ZipCursor final : public Cursor {
 public:
  ZipCursor(const ZipFlow& flow, Turn turn) : flow_(flow) {
    for (const FlowPtr& part : flow.parts_) {
      inputs_.push_back(part->open(turn));
      buffers_.push_back(std::make_unique<RowBuffer>(part->spec()));
    }
  }

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    // Row by row: nothing after the end of the shortest part may be pulled, or fail.
    std::size_t made = 0;
    while (made < out.rows) {
      const Scratch::Frame frame(pulling.context.scratch);
      auto got = pull_some(cut_rows(out, made, 1, pulling.context.scratch), pulling);
      if (!got) return got;
      if (*got == 0) break;
      ++made;
    }
    return made;
  }
  void save(Anchor& anchor) override {
    anchor.numbers.push_back(ended_ ? 1 : 0);
    anchor.numbers.push_back(rows_);
    for (const CursorPtr& input : inputs_) input->save(anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    ended_ = anchor.number() != 0;
    rows_ = anchor.number();
    for (const CursorPtr& input : inputs_)
      if (auto done = input->restore(anchor, pulling); !done) return done;
    return {};
  }

 private:
  Result<std::size_t> pull_some(const BlockView& out, Pulling& pulling) {
    std::size_t rows = ended_ ? 0 : out.rows;
    for (std::size_t i = 0; i < inputs_.size() && rows > 0; ++i) {
      buffers_[i]->reserve(rows);
      auto got = inputs_[i]->pull(buffers_[i]->rows(0, rows), pulling);
      if (!got) return got;
      if (flow_.strict_ && i > 0 && *got < rows) return unequal(i, *got);
      rows = *got;
    }
    if (flow_.strict_ && rows < out.rows && !ended_)
      if (auto done = all_ended(rows, pulling); !done) return std::move(done.failure());
    ended_ = rows < out.rows;
    write(rows, out);
    rows_ += rows;
    return rows;
  }

  [[nodiscard]] Failure unequal(std::size_t part, std::size_t rows) const {
    return {fmt::format("zip: part {} ended after {} elements, an earlier one has more", part,
                        rows_ + rows),
            {},
            "drop strict, or make the parts equally long"};
  }
  /// Called when the first part has ended; checks that the others have ended, too.
  Result<void> all_ended(std::size_t rows, Pulling& pulling) {
    for (std::size_t i = 1; i < inputs_.size(); ++i) {
      buffers_[i]->reserve(rows + 1);
      auto got = inputs_[i]->pull(buffers_[i]->rows(rows, 1), pulling);
      if (!got) return std::move(got.failure());
      if (*got > 0)
        return Failure{
            fmt::format("zip: part 0 ended after {} elements, part {} has more", rows_ + rows, i),
            {},
            "drop strict, or make the parts equally long"};
    }
    return {};
  }

  void write(std::size_t rows, const BlockView& out) {
    std::vector<BlockView> parts;
    parts.reserve(buffers_.size());
    for (const auto& buffer : buffers_) parts.push_back(buffer->rows(0, rows));
    for (std::size_t row = 0; row < rows; ++row) {
      out.identity.sample_id[row] = parts[0].identity.sample_id[row];
      out.identity.occurrence[row] = parts[0].identity.occurrence[row];
      if (out.samples == nullptr) continue;
      std::vector<Sample> tuple;
      tuple.reserve(parts.size());
      for (const BlockView& part : parts) tuple.push_back(read_row(part, row));
      (void)write_row(out, row, Sample::tuple(std::move(tuple)));
    }
    if (out.samples != nullptr) return;
    std::size_t column = 0;
    for (BlockView& part : parts) {
      BlockView target = out;
      target.columns = out.columns.subspan(column, part.columns.size());
      target.identity = part.identity;  // the caller needs only the values
      copy_rows(part, 0, target, 0, rows);
      column += part.columns.size();
    }
  }

  const ZipFlow& flow_;
  std::vector<CursorPtr> inputs_;
  std::vector<std::unique_ptr<RowBuffer>> buffers_;
  std::uint64_t rows_ = 0;
  bool ended_ = false;
};

CursorPtr ZipFlow::open(Turn turn) const {
  return std::make_unique<ZipCursor>(*this, turn);
}

class Zip final : public OnSamples {
 public:
  explicit Zip(bool strict) : strict_(strict) {}
  [[nodiscard]] Words words() const override { return {"zip", strict_ ? "zip(strict)" : "zip()"}; }
  [[nodiscard]] Facts facts(const Node&) const override { return {}; }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    add_order_of_inputs(node, counting, lines);
    lines.push_back(fmt::format("{} of {}", words().line, node.inputs.size()));
  }
  void add_values(const Node& node, Digest& digest) const override {
    digest.add(words().line);
    digest.add(node.spec.text());
  }
  [[nodiscard]] Json arguments() const override { return {{"strict", strict_}}; }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return Dataset::zip(inputs, {strict_});
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    std::vector<StagePtr> parts;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Node& input = *node.inputs[i];
      parts.push_back(compiler.samples(input, first_id));
      if (!input.size.is_endless() && input.size != node.size)
        compiler.note(fmt::format("zip: {} of the {} samples of part {} are unused",
                                  input.size.count() - node.size.count(), input.size.count(), i));
    }
    return zip_stage(std::move(parts), false, node.spec);
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    std::vector<FlowPtr> parts;
    for (const NodePtr& input : node.inputs) parts.push_back(compiler.flow(*input, first_id));
    return std::make_unique<ZipFlow>(std::move(parts), node.spec, strict_);
  }

 private:
  const bool strict_;
};

}  // namespace

StagePtr zip_stage(std::vector<StagePtr> parts, bool numbered, const ElementSpec& spec) {
  return std::make_unique<ZipStage>(std::move(parts), numbered, spec);
}

Dataset Dataset::zip(const std::vector<Dataset>& parts, const ZipOptions& options) {
  if (parts.empty()) throw ConfigError("zip: there is nothing to zip");
  Node node;
  node.verb = std::make_shared<const Zip>(options.strict);
  std::vector<ElementSpec> specs;
  node.size = parts.front().cardinality();
  for (const Dataset& part : parts) {
    refuse_if_batched(part, "zip", "zip the samples, then batch");
    node.stream = node.stream || part.streamed();
    if (options.strict && part.cardinality() != parts.front().cardinality() &&
        !part.cardinality().is_unknown() && !parts.front().cardinality().is_unknown())
      throw ConfigError("zip: the parts have different lengths and strict is set");
    specs.push_back(part.element_spec());
    node.inputs.push_back(part.node());
    if (!part.cardinality().is_counted()) continue;
    if (!node.size.is_counted() || part.cardinality().count() < node.size.count())
      node.size = part.cardinality();
  }
  node.spec = ElementSpec::tuple(specs);
  for (const Dataset& part : parts)
    if (part.cardinality().is_unknown()) node.size = part.cardinality();
  return make_node(std::move(node));
}

Dataset parse_zip(const Parsed& parsed) {
  return Dataset::zip(parsed.inputs, {parsed.flag("strict")});
}

}  // namespace penstock
