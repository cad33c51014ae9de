#include <fmt/format.h>

#include <algorithm>

#include "plan/slice_flow.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

class Take final : public Move {
 public:
  explicit Take(std::optional<std::uint64_t> count) : count_(count) {}
  [[nodiscard]] Words words() const override {
    return {"take", fmt::format("take({})", number_or(count_, "all"))};
  }
  [[nodiscard]] Facts facts(const Node&) const override { return {.counts_steps = true}; }
  [[nodiscard]] Json arguments() const override { return {{"count", written_count(count_)}}; }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().take(written_count(count_));
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    return walk.of(node.input()).sliced(0, count_.value_or(kEndless));
  }

 protected:
  [[nodiscard]] StagePtr move(StagePtr input, std::uint64_t, const Compiler&) const override {
    return input;
  }
  [[nodiscard]] FlowPtr move(FlowPtr input, const Compiler&) const override {
    return count_ ? slice_flow(std::move(input), {.count = *count_}) : std::move(input);
  }
  [[nodiscard]] StepFlowPtr move(StepFlowPtr input) const override {
    return count_ ? slice_flow(std::move(input), {.count = *count_}) : std::move(input);
  }

 private:
  const std::optional<std::uint64_t> count_;  // nothing: all
};

}  // namespace

Dataset Dataset::take(std::int64_t count) const {
  const auto wanted = count_or_all("take", count);
  Node node = after(*this, std::make_shared<const Take>(wanted));
  if (wanted && !cardinality().is_unknown())
    node.size = Cardinality::of(
        cardinality().is_endless() ? *wanted : std::min(*wanted, cardinality().count()));
  return make_node(std::move(node));
}

Dataset parse_take(const Parsed& parsed) {
  return parsed.input().take(parsed.number("count"));
}

}  // namespace penstock
