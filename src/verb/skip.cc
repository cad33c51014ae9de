#include <fmt/format.h>

#include <algorithm>

#include "plan/moved_stage.h"
#include "plan/slice_flow.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

class Skip final : public Move {
 public:
  explicit Skip(std::optional<std::uint64_t> count) : count_(count) {}
  [[nodiscard]] Words words() const override {
    return {"skip", fmt::format("skip({})", number_or(count_, "all"))};
  }
  [[nodiscard]] Facts facts(const Node&) const override { return {.counts_steps = true}; }
  [[nodiscard]] Json arguments() const override { return {{"count", written_count(count_)}}; }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().skip(written_count(count_));
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    const Steps input = walk.of(node.input());
    return count_ ? input.sliced(*count_, kEndless) : input.sliced(0, 0);
  }

 protected:
  [[nodiscard]] StagePtr move(StagePtr input, std::uint64_t, const Compiler&) const override {
    const std::uint64_t first = count_.value_or(0);
    if (first == 0) return input;
    return moved_stage(std::move(input), [first](const Ask& ask, Positions out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + ask.positions[i];
    });
  }
  [[nodiscard]] FlowPtr move(FlowPtr input, const Compiler&) const override {
    return slice_flow(std::move(input), slice());
  }
  [[nodiscard]] StepFlowPtr move(StepFlowPtr input) const override {
    return slice_flow(std::move(input), slice());
  }

 private:
  [[nodiscard]] Slice slice() const { return count_ ? Slice{.first = *count_} : Slice{.count = 0}; }

  const std::optional<std::uint64_t> count_;  // nothing: all
};

}  // namespace

Dataset Dataset::skip(std::int64_t count) const {
  const auto unwanted = count_or_all("skip", count);
  Node node = after(*this, std::make_shared<const Skip>(unwanted));
  if (!unwanted && !cardinality().is_unknown()) {
    node.size = Cardinality::of(0);
  } else if (cardinality().is_counted()) {
    const std::uint64_t all = cardinality().count();
    node.size = Cardinality::of(all - std::min(all, unwanted.value_or(all)));
  }
  return make_node(std::move(node));
}

Dataset parse_skip(const Parsed& parsed) {
  return parsed.input().skip(parsed.number("count"));
}

}  // namespace penstock
