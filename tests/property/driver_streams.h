#pragma once
// The streams, predicates and failing functions of the property test's driver. Their definition is
// in tests/property/streams.py.
#include <penstock/penstock.h>

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.h"
#include "driver_elements.h"

namespace penstock {

// Failing functions, and predicates.

/// Throws for numbers with a certain remainder, if `node` requests it.
class Fault {
 public:
  explicit Fault(const Json& node) {
    if (!node.contains("faulty")) return;
    divisor_ = node["faulty"].at(0);
    rest_ = node["faulty"].at(1);
  }
  void check(std::int64_t x) const {
    if (rest_of(x, divisor_) == rest_) throw std::runtime_error(fmt::format("faulty {}", x));
  }

 private:
  std::int64_t divisor_ = 1;
  std::int64_t rest_ = 1;
};

inline Dataset faulty_map(const Dataset& in, const Json& node, const MapOptions& options) {
  const auto next = [fault = Fault(node)](std::int64_t x) {
    fault.check(x);
    return wrap_affine(x, 1, 1);
  };
  if (node.at("form") == "typed") return in.map(next, options);
  return in.map(
      [fault = Fault(node)](const Sample& sample) {
        fault.check(total(sample));
        return on_integers(sample, [](std::int64_t x) { return wrap_affine(x, 1, 1); });
      },
      options);
}

class Predicate {
 public:
  explicit Predicate(const Json& node) : fault_(node) {
    if (node.at("fn") == "random") {
      range_ = node.at("range");
      below_ = node.at("below");
    } else {
      divisor_ = node.at("divisor");
      rest_ = node.at("rest");
    }
  }
  [[nodiscard]] bool passes(std::int64_t x) const {
    fault_.check(x);
    return rest_of(x, divisor_) != rest_;
  }
  bool passes(std::int64_t x, Rng& rng) const {
    fault_.check(x);
    return rng.integer(range_) < below_;
  }

 private:
  Fault fault_;
  std::int64_t divisor_ = 1;
  std::int64_t rest_ = 0;
  std::uint64_t range_ = 1;
  std::uint64_t below_ = 0;
};

/// `use(predicate)` with the predicate of `node` in the requested form.
template <typename Use>
Dataset with_predicate(const Json& node, const Use& use) {
  const Predicate p(node);
  const bool random = node.at("fn") == "random";
  if (node.at("form") == "sample") {
    if (random) return use([p](const Sample& s, Rng& rng) { return p.passes(total(s), rng); });
    return use([p](const Sample& s) { return p.passes(total(s)); });
  }
  if (node.at("args") == 1) {
    if (random) return use([p](std::int64_t x, Rng& rng) { return p.passes(x, rng); });
    return use([p](std::int64_t x) { return p.passes(x); });
  }
  if (random) {
    return use([p](std::int64_t x, std::int64_t y, Rng& rng) {
      return p.passes(wrap_affine(x, 1, y), rng);
    });
  }
  return use([p](std::int64_t x, std::int64_t y) { return p.passes(wrap_affine(x, 1, y)); });
}

// Ops.

/// Elements that contain rows: x, x + 1, ... and possibly their squares.
inline Dataset spread(const Dataset& in, const Json& node) {
  const bool single = node.at("shape") == "int";
  MapOptions options;
  if (node.at("declared")) {
    const ElementSpec rows = ElementSpec::single(Dtype::i64, {kUnknown});
    const ElementSpec squares = ElementSpec::dict({{"k", Dtype::i64, {kUnknown}}});
    options.spec = single ? rows : ElementSpec::tuple({rows, squares});
  }
  return in.map(
      [single, most = node.at("most").get<std::int64_t>()](const Sample& sample) {
        const std::int64_t x = total(sample);
        std::vector<std::int64_t> rows;
        std::vector<std::int64_t> squares;
        for (std::int64_t i = 0; i < rest_of(x, most); ++i) {
          rows.push_back(wrap_affine(x, 1, i));
          squares.push_back(i * i);
        }
        if (single) return Sample(Tensor::of(rows));
        return Sample::tuple({Tensor::of(rows), Sample::dict({{"k", Tensor::of(squares)}})});
      },
      options);
}

/// `build(node, x)` returns the dataset that element x opens.
using Build = std::function<Dataset(const Json&, std::int64_t)>;

inline Dataset expanded(const Dataset& in, const Json& node, const Build& build) {
  const auto open = [inner = node.at("inner"), build](std::int64_t x) { return build(inner, x); };
  const auto open_sample = [open](const Sample& sample) { return open(total(sample)); };
  const bool typed = node.at("form") == "typed";
  std::optional<ElementSpec> spec;
  if (node.at("declared"))
    spec = ElementSpec::single(Dtype::i64, node.value("ragged", false) ? Shape{kUnknown} : Shape{});
  if (node.at("op") == "flat_map") {
    const FlatMapOptions options{.spec = spec};
    return typed ? in.flat_map(open, options) : in.flat_map(open_sample, options);
  }
  const InterleaveOptions options{
      .cycle = node.at("cycle"), .block = node.at("block"), .spec = spec};
  return typed ? in.interleave(open, options) : in.interleave(open_sample, options);
}

/// The difference of each element and a state that is 3 * state + element afterwards.
inline Dataset scanned(const Dataset& in, const Json& node) {
  const auto step = [fault = Fault(node)](const Sample& state, const Sample& element) {
    const auto before = state.tensor().item<std::int64_t>();
    const std::int64_t x = total(element);
    fault.check(x);
    return std::pair<Sample, Sample>(
        Tensor::scalar(wrap_affine(before, 3, x)),
        on_integers(element, [&](std::int64_t each) { return wrap_affine(before, -1, each); }));
  };
  ScanOptions options;
  if (node.at("declared"))
    options.spec = in.element_spec().known ? in.element_spec() : ElementSpec::single(Dtype::i64);
  return in.scan(Tensor::scalar(node.at("start").get<std::int64_t>()), step, options);
}

/// `in` with the op of `node`, if it is one of the ops of this file.
inline std::optional<Dataset> stream_op(const Dataset& in, const Json& node, const Build& build) {
  const std::string op = node.at("op");
  const FilterOptions options{.seed = node.value("seed", std::uint64_t{0}),
                              .mask = node.value("mask", false)};
  if (op == "filter")
    return with_predicate(node, [&](const auto& p) { return in.filter(p, options); });
  if (op == "take_while")
    return with_predicate(node, [&](const auto& p) { return in.take_while(p, options); });
  if (op == "select")
    return with_predicate(node, [&](const auto& p) { return in.select(p, options); });
  if (op == "split") {
    const auto [first, second] = in.split(node.at("fraction"), node.at("seed"));
    return node.at("half") == 0 ? first : second;
  }
  if (op == "scan") return scanned(in, node);
  if (op == "spread") return spread(in, node);
  if (op == "unbatch_samples") return in.unbatch();
  if (op == "flat_map" || op == "interleave") return expanded(in, node, build);
  return std::nullopt;
}

/// The samples that a loader skipped.
inline Json ledger_json(const Ledger& ledger) {
  Json entries = Json::array();
  for (const LedgerEntry& entry : ledger.entries())
    entries.push_back(
        {entry.epoch, entry.step, entry.sample.source, entry.sample.number, entry.reason});
  return {{"count", ledger.count()}, {"entries", entries}};
}

}  // namespace penstock
