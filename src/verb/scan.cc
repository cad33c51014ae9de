// A function with a state that passes from element to element.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/cancelled.h"
#include "base/guarded.h"
#include "plan/flow_kinds.h"
#include "sample/rows.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

/// A loader's state has at most 64 KB, in which these bytes take twice their size.
constexpr std::size_t kStateBytesMax = 16 << 10;

/// Sizes, number of bytes and bytes of each tensor: "2,3,:24:" and 24 bytes. Structure and dtypes
/// are those of the initial state.
std::string state_text(const Sample& state) {
  std::string text;
  for (const Tensor& leaf : state.leaves()) {
    for (const std::int64_t size : leaf.shape()) text += fmt::format("{},", size);
    text += fmt::format(":{}:", leaf.raw().size());
    text += leaf.text();
  }
  return text;
}

/// Removes a number and the `end` after it from the start of `text`; nothing if there is none.
std::optional<std::uint64_t> take_number(std::string_view& text, char end) {
  std::uint64_t number = 0;
  const auto found = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<std::size_t>(found.ptr - text.data());
  if (found.ec != std::errc() || used == text.size() || text[used] != end) return std::nullopt;
  text.remove_prefix(used + 1);
  return number;
}

std::optional<Tensor> take_tensor(std::string_view& text, Dtype dtype) {
  Shape shape;
  std::uint64_t values = 1;
  while (!text.empty() && text.front() != ':') {
    const auto size = take_number(text, ',');
    if (!size || *size > kStateBytesMax) return std::nullopt;
    shape.push_back(static_cast<std::int64_t>(*size));
    values = std::min<std::uint64_t>(values * *size, kStateBytesMax + 1);
  }
  if (text.empty()) return std::nullopt;
  text.remove_prefix(1);
  const auto bytes = take_number(text, ':');
  if (!bytes || *bytes > text.size()) return std::nullopt;
  const bool fits = is_variable(dtype) ? shape.empty() : *bytes == values * dtype_size(dtype);
  if (!fits) return std::nullopt;
  const std::string_view data = text.substr(0, *bytes);
  text.remove_prefix(*bytes);
  if (is_variable(dtype)) return Tensor::bytes(data, dtype);
  return Tensor::copy(dtype, shape, std::as_bytes(std::span(data)));
}

std::optional<Sample> parse_state(std::string_view text, const Sample& like) {
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : like.leaves()) {
    auto tensor = take_tensor(text, leaf.dtype());
    if (!tensor) return std::nullopt;
    leaves.push_back(std::move(*tensor));
  }
  if (!text.empty()) return std::nullopt;
  return Sample::assemble(like.structure(), std::move(leaves));
}

/// Returns what is wrong with `state` as the successor of `initial`.
std::optional<std::string> wrong_state(const Sample& state, const Sample& initial) {
  bool same =
      state.structure() == initial.structure() && state.leaves().size() == initial.leaves().size();
  std::size_t bytes = 0;
  for (std::size_t i = 0; same && i < state.leaves().size(); ++i) {
    same = state.leaves()[i].dtype() == initial.leaves()[i].dtype();
    bytes += state.leaves()[i].raw().size();
  }
  if (!same)
    return fmt::format("the function returned a state {}; the initial state is {}",
                       ElementSpec::of(state).text(), ElementSpec::of(initial).text());
  if (bytes > kStateBytesMax)
    return fmt::format("the function returned a state of {} bytes; the limit is {}", bytes,
                       kStateBytesMax);
  return std::nullopt;
}

/// A copy that owns its memory: the function may return a part of the element.
Sample owned(const Sample& sample) {
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : sample.leaves()) leaves.push_back(leaf.kept());
  return Sample::assemble(sample.structure(), std::move(leaves));
}

struct Scanning {
  Sample initial;
  ScanFn fn;
  std::string title;
};

class ScanCursor final : public Cursor {
 public:
  ScanCursor(const Flow& input, Turn turn, const Scanning& scanning)
      : input_flow_(input),
        input_(input.open(turn)),
        scanning_(scanning),
        state_(scanning.initial),
        element_(input.spec()) {
    element_.reserve(1);
  }

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows) {
      auto got = input_->pull(element_.rows(0, 1), pulling);
      if (!got) return got;
      if (*got == 0) break;
      auto done = advance(out, made, pulling.context);
      if (done) {
        ++made;
      } else if (pulling.failures == nullptr || done.failure().must_raise()) {
        return std::move(done.failure());
      } else {
        pulling.failures->add(std::move(done.failure()), nullptr);
      }
    }
    return made;
  }
  void save(Anchor& anchor) override {
    anchor.texts.push_back(state_text(state_));
    input_->save(anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    const std::string text = anchor.text();
    auto state = parse_state(text, scanning_.initial);
    if (!state)
      throw StateError(
          fmt::format("{}: the saved state does not have the form of the initial "
                      "state {}",
                      scanning_.title, ElementSpec::of(scanning_.initial).text()));
    state_ = std::move(*state);
    return input_->restore(anchor, pulling);
  }

 private:
  /// Row `row` of `out` from the current element. After a failure the state is unchanged.
  Result<void> advance(const BlockView& out, std::size_t row, const Context& context) {
    const BlockView element = element_.rows(0, 1);
    const std::uint64_t id = element.identity.sample_id[0];
    const trace::MeasuredCall call = context.enter(scanning_.title, id, 1);
    if (context.cancelled()) return cancelled(0);
    std::pair<Sample, Sample> made;
    auto done = guarded([&] { made = scanning_.fn(state_, read_row(element, 0)); },
                        [] { return std::size_t{0}; });
    if (done) {
      if (auto wrong = wrong_state(made.first, scanning_.initial)) {
        done = Failure{std::move(*wrong),
                       {},
                       "a state keeps its structure and dtypes, and is a "
                       "summary of at most 16 KB"};
      } else if (auto differs = write_row(out, row, made.second)) {
        done = Failure{std::move(*differs), {}, "return outputs of the same fields each time"};
      }
    }
    if (!done) {
      done.failure().where.op = scanning_.title;
      done.failure().make_permanent();  // called once for each element
      return at_sample(std::move(done.failure()), input_flow_.ids(), element);
    }
    out.identity.sample_id[row] = id;
    out.identity.occurrence[row] = element.identity.occurrence[0];
    state_ = owned(made.first);
    return {};
  }

  const Flow& input_flow_;
  const CursorPtr input_;
  const Scanning& scanning_;
  Sample state_;
  RowBuffer element_;
};

class Scan final : public OnSamples {
 public:
  Scan(Sample initial, ScanFn fn, ScanOptions options)
      : initial_(std::move(initial)), fn_(std::move(fn)), options_(std::move(options)) {}
  [[nodiscard]] Words words() const override {
    const std::string name = options_.name.empty() ? "" : fmt::format("\"{}\", ", options_.name);
    return {"scan", fmt::format("scan({}state {})", name, ElementSpec::of(initial_).text())};
  }
  [[nodiscard]] Facts facts(const Node&) const override { return {}; }
  void add_values(const Node& node, Digest& digest) const override {
    digest.add(words().line);
    digest.add(state_text(initial_));
    digest.add(node.spec.text());
  }
  [[nodiscard]] Json arguments() const override {
    return {{"name", required_name("scan", options_.name)}};
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().scan(initial_, fn_, options_);
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    FlowPtr input = compiler.flow(node.input(), first_id);
    return same_rows_over<ScanCursor>(std::move(input), node.spec,
                                      Scanning{initial_, fn_, compiler.numbered(words().line)});
  }
  [[nodiscard]] std::string name() const override { return options_.name; }

 private:
  const Sample initial_;
  const ScanFn fn_;
  const ScanOptions options_;
};

}  // namespace

Dataset Dataset::scan(Sample initial, ScanFn fn, const ScanOptions& options) const {
  refuse_if_batched(*this, "scan", "scan the samples, then batch the result");
  if (!fn) throw ConfigError("scan: there is no function");
  initial = owned(initial);
  if (const auto wrong = wrong_state(initial, initial))
    throw ConfigError("scan: the initial state has more than 16 KB", {},
                      "keep a summary: states of a loader contain it");
  Node node =
      after(*this, std::make_shared<const Scan>(std::move(initial), std::move(fn), options));
  node.spec = options.spec.value_or(ElementSpec::unknown());
  node.size = cardinality().is_endless() ? cardinality() : Cardinality::unknown();
  node.stream = true;
  return make_node(std::move(node));
}

/// The function and the initial state stay with their dataset; the text names them.
Dataset parse_scan(const Parsed& parsed) {
  const Node& found = parsed.named.expansion(parsed.text("name"));
  return found.verb->apply(found, {parsed.input()});
}

}  // namespace penstock
