// A function with a state that passes from element to element.
#include <fmt/format.h>

#include <charconv>
#include <optional>
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

constexpr std::size_t kStateBytesMax = 64 << 10;

/// The value of a lower-case hexadecimal digit, or nothing.
std::optional<unsigned> digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a' + 10);
  return std::nullopt;
}

/// Shape and bytes of each tensor, "2,3:00ff..;" and so on. Structure and dtypes are those of the
/// initial state.
std::string state_text(const Sample& state) {
  std::string text;
  for (const Tensor& leaf : state.leaves()) {
    for (const std::int64_t size : leaf.shape()) text += fmt::format("{},", size);
    text += ':';
    for (const std::byte byte : leaf.raw())
      text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    text += ';';
  }
  return text;
}

std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    std::int64_t size = -1;
    const auto end = std::from_chars(text.data(), text.data() + comma, size);
    if (end.ec != std::errc() || end.ptr != text.data() + comma || size < 0) return std::nullopt;
    shape.push_back(size);
    text.remove_prefix(comma + 1);
  }
  return shape;
}

std::optional<Tensor> parse_tensor(std::string_view text, Dtype dtype) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto shape = parse_shape(text.substr(0, colon));
  const std::string_view digits = text.substr(colon + 1);
  if (!shape || digits.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto high = digit_value(digits[i]);
    const auto low = digit_value(digits[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(16 * *high + *low));
  }
  if (is_variable(dtype)) {
    if (!shape->empty()) return std::nullopt;
    return Tensor::bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, dtype);
  }
  std::size_t wanted = dtype_size(dtype);
  for (const std::int64_t size : *shape) {
    if (size > static_cast<std::int64_t>(kStateBytesMax)) return std::nullopt;
    wanted *= static_cast<std::size_t>(size);
    if (wanted > kStateBytesMax) return std::nullopt;
  }
  if (wanted != bytes.size()) return std::nullopt;
  return Tensor::copy(dtype, *shape, bytes);
}

std::optional<Sample> parse_state(std::string_view text, const Sample& like) {
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : like.leaves()) {
    const std::size_t end = text.find(';');
    if (end == std::string_view::npos) return std::nullopt;
    auto tensor = parse_tensor(text.substr(0, end), leaf.dtype());
    if (!tensor) return std::nullopt;
    leaves.push_back(std::move(*tensor));
    text.remove_prefix(end + 1);
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
    context.doing(scanning_.title, id, 1);
    if (context.cancelled()) return cancelled(0);
    std::pair<Sample, Sample> made;
    auto done = guarded([&] { made = scanning_.fn(state_, read_row(element, 0)); },
                        [] { return std::size_t{0}; });
    if (done) {
      if (auto wrong = wrong_state(made.first, scanning_.initial)) {
        done = Failure{std::move(*wrong),
                       {},
                       "a state keeps its structure and dtypes, and is a "
                       "summary of at most 64 KB"};
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
    throw ConfigError("scan: the initial state has more than 65536 bytes", {},
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
