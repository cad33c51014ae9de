#pragma once
// The elements of the property test's sources, and its generators. Their definition is in
// tests/property/model.py and stream_nodes.py.
#include <penstock/penstock.h>

#include <fmt/format.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/json.h"

namespace penstock {

inline std::int64_t wrap_affine(std::int64_t x, std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(a) +
                                   static_cast<std::uint64_t>(b));
}

/// Applies `fn` to every i64 leaf and copies the rest.
template <typename Fn>
Sample on_integers(const Sample& in, Fn fn) {
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : in.leaves()) {
    if (leaf.dtype() != Dtype::i64) {
      leaves.push_back(leaf);
      continue;
    }
    std::vector<std::int64_t> values;
    for (const std::int64_t value : leaf.values<std::int64_t>()) values.push_back(fn(value));
    leaves.push_back(Tensor::of(std::span<const std::int64_t>(values), leaf.shape()));
  }
  return Sample::assemble(in.structure(), std::move(leaves));
}

/// The sum of the integers of a sample.
inline std::int64_t total(const Sample& in) {
  std::int64_t sum = 0;
  const auto add = [&sum](const auto& values) {
    for (const auto value : values) sum = wrap_affine(value, 1, sum);
  };
  for (const Tensor& leaf : in.leaves()) {
    if (leaf.dtype() == Dtype::i64) add(leaf.values<std::int64_t>());
    if (leaf.dtype() == Dtype::i32) add(leaf.values<std::int32_t>());
  }
  return sum;
}

/// The non-negative remainder.
inline std::int64_t rest_of(std::int64_t x, std::int64_t divisor) {
  const std::int64_t rest = x % divisor;
  return rest < 0 ? rest + divisor : rest;
}

// Elements of sources: number k of each kind.

inline Sample pairs_element(std::int64_t k, std::int64_t salt) {
  return Sample::tuple({Tensor::scalar(k - salt), Sample::dict({{"k", Tensor::scalar(k * k)}})});
}
inline ElementSpec pairs_spec() {
  return ElementSpec::tuple(
      {ElementSpec::single(Dtype::i64), ElementSpec::dict({{"k", Dtype::i64, {}}})});
}

inline std::string slices_text(std::int64_t k) {
  std::string text;
  for (std::int64_t i = 0; i < k % 4; ++i) text += fmt::format("{}", k);
  return text;
}
inline Sample slices_element(std::int64_t k, std::int64_t salt) {
  const std::vector<float> v = {static_cast<float>(k), static_cast<float>(k + 1),
                                static_cast<float>(k + salt)};
  return Sample::dict({{"s", Tensor::bytes(slices_text(k))},
                       {"v", Tensor::of(v)},
                       {"x", Tensor::scalar(k * 7 + salt)}});
}
inline ElementSpec slices_spec() {
  return ElementSpec::dict(
      {{"s", Dtype::bytes, {}}, {"v", Dtype::f32, {3}}, {"x", Dtype::i64, {}}});
}

inline Dataset slices(std::int64_t rows, std::int64_t salt) {
  // Strings have no dense column, so they come from a function; the rest is sliced.
  std::vector<float> v;
  std::vector<std::int64_t> x;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (const std::int64_t value : {i, i + 1, i + salt}) v.push_back(static_cast<float>(value));
    x.push_back(i * 7 + salt);
  }
  const Dataset dense = Dataset::from_tensor_slices(Sample::dict(
      {{"v", Tensor::of(std::span<const float>(v), {rows, 3})}, {"x", Tensor::of(x)}}));
  return dense.map(
      [salt](const Sample& in) {
        const std::int64_t i = (in["x"].item<std::int64_t>() - salt) / 7;
        return Sample::dict({{"s", Tensor::bytes(slices_text(i))}, {"v", in["v"]}, {"x", in["x"]}});
      },
      {.spec = slices_spec()});
}

inline bool is_ragged_source(const std::string& op) {
  return op == "ragged" || op == "tokens" || op == "wide";
}

/// Arrays of different lengths.
class RaggedElements {
 public:
  explicit RaggedElements(const Json& node)
      : salt_(node.at("salt")), most_(node.at("most")), every_(node.at("every")) {}

  static ElementSpec spec(const std::string& kind) {
    if (kind == "tokens") return ElementSpec::single(Dtype::i32, {kUnknown});
    if (kind == "wide") return ElementSpec::single(Dtype::i64, {kUnknown, 2});
    return ElementSpec::dict({{"a", Dtype::i64, {kUnknown, 2}},
                              {"m", Dtype::i64, {kUnknown}},
                              {"t", Dtype::i32, {kUnknown}},
                              {"x", Dtype::i64, {}}});
  }
  [[nodiscard]] Sample operator()(const std::string& kind, std::int64_t i) const {
    if (kind == "tokens") return Tensor::of(tokens(i));
    return kind == "wide" ? Sample(wide(i, length(i))) : ragged(i);
  }
  [[nodiscard]] Sample ragged(std::int64_t i) const {
    std::vector<std::int64_t> mask;
    for (std::int64_t j = 0; j < length(i); ++j) mask.push_back((i + j) % 3);
    return Sample::dict({{"a", wide(i, (i / every_ + salt_) % 4)},
                         {"m", Tensor::of(mask)},
                         {"t", Tensor::of(tokens(i))},
                         {"x", Tensor::scalar(i * 7 + salt_)}});
  }
  [[nodiscard]] std::int64_t length(std::int64_t i) const {
    return (i / every_ * 5 + salt_) % most_;
  }
  [[nodiscard]] std::vector<std::int32_t> tokens(std::int64_t i) const {
    std::vector<std::int32_t> values;
    for (std::int64_t j = 0; j < length(i); ++j)
      values.push_back(static_cast<std::int32_t>((i * 31 + j * 7 + salt_) % 50'000));
    return values;
  }
  [[nodiscard]] std::vector<std::int64_t> pairs(std::int64_t i, std::int64_t rows) const {
    std::vector<std::int64_t> values;
    for (std::int64_t j = 0; j < rows; ++j) {
      values.push_back(i - j);
      values.push_back(i * j + salt_);
    }
    return values;
  }

 private:
  [[nodiscard]] Tensor wide(std::int64_t i, std::int64_t rows) const {
    const std::vector<std::int64_t> values = pairs(i, rows);
    return Tensor::of(std::span<const std::int64_t>(values), {rows, 2});
  }

  std::int64_t salt_;
  std::int64_t most_;
  std::int64_t every_;
};

// Generators.

/// Elements make(0), make(1), ..., `size` of them, or endless.
template <typename Make, bool kCursor>
struct Pulled {
  using T = std::invoke_result_t<const Make&, std::int64_t>;
  Make make;
  std::int64_t size = 0;  // -1: no end
  std::int64_t number = 0;

  std::optional<T> operator()() {
    if (number == size) return std::nullopt;
    return make(number++);
  }
  std::string save()
    requires kCursor
  {
    return fmt::format("at {}", number);
  }
  void restore(const std::string& text)
    requires kCursor
  {
    number = std::stoll(text.substr(3));
  }
};

/// `make_of(shift)` returns the function of numbers; the shift depends on the turn, for a generator
/// that uses it.
template <bool kCursor, typename MakeOf>
Dataset generator_of(const Json& node, const MakeOf& make_of, const SourceOptions& options) {
  const auto start = [make_of, size = node.at("size").get<std::int64_t>()](std::int64_t shift) {
    const auto make = make_of(shift);
    return Pulled<std::remove_const_t<decltype(make)>, kCursor>{make, size};
  };
  if (!node.at("turned")) return Dataset::from_generator([start] { return start(0); }, options);
  return Dataset::from_generator(
      [start](GeneratorStart turn) {
        return start(static_cast<std::int64_t>(7 * turn.epoch + 11 * turn.round));
      },
      options);
}

inline Dataset generator(const Json& node) {
  const std::string element = node.at("element");
  const auto salt = node.at("salt").get<std::int64_t>();
  SourceOptions options;
  const auto made = [&](const auto& make_of) {
    return node.at("cursor") ? generator_of<true>(node, make_of, options)
                             : generator_of<false>(node, make_of, options);
  };
  const bool declared = node.value("declared", false);
  if (element == "pairs") {
    if (declared) options.spec = pairs_spec();
    return made(
        [salt](std::int64_t) { return [salt](std::int64_t k) { return pairs_element(k, salt); }; });
  }
  if (element == "slices") {
    if (declared) options.spec = slices_spec();
    return made([salt](std::int64_t) {
      return [salt](std::int64_t k) { return slices_element(k, salt); };
    });
  }
  if (is_ragged_source(element)) {
    if (declared) options.spec = RaggedElements::spec(element);
    return made([elements = RaggedElements(node), element](std::int64_t) {
      return [elements, element](std::int64_t k) { return elements(element, k); };
    });
  }
  if (element == "tuple") {
    return made([salt](std::int64_t shift) {
      return [salt, shift](std::int64_t k) {
        return std::tuple(wrap_affine(k - salt, 1, shift), k * k);
      };
    });
  }
  const auto numbers = [salt](std::int64_t shift) {
    return
        [first = wrap_affine(salt, 1, shift)](std::int64_t k) { return wrap_affine(k, 5, first); };
  };
  if (node.at("form") == "typed") return made(numbers);
  if (declared) options.spec = ElementSpec::single(Dtype::i64);
  return made([numbers](std::int64_t shift) {
    return [make = numbers(shift)](std::int64_t k) { return Sample(Tensor::scalar(make(k))); };
  });
}

/// The source in the dataset that element x opens.
inline Dataset hatched(const Json& node, std::int64_t x) {
  const std::int64_t size = rest_of(x, node.at("most").get<std::int64_t>());
  const std::int64_t salt = rest_of(x, 1000);
  if (node.at("of") == "range") return Dataset::range(salt, salt + size);
  Json inner = node.at("generator");
  inner["element"] = "int";
  inner["size"] = size;
  inner["salt"] = salt;
  return generator(inner);
}

}  // namespace penstock
