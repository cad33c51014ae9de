#include <fmt/format.h>

#include "plan/routed_stage.h"
#include "plan/series_flow.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

class Repeat final : public Move {
 public:
  explicit Repeat(std::optional<std::uint64_t> count) : count_(count) {}
  [[nodiscard]] Words words() const override {
    return {"repeat", fmt::format("repeat({})", number_or(count_, "for ever"))};
  }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.copies = count_.value_or(kEndless) > 1, .rounds = rounds()};
  }
  [[nodiscard]] Json arguments() const override { return {{"count", written_count(count_)}}; }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().repeat(written_count(count_));
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    return walk.of(node.input()).repeated(count_.value_or(kEndless));
  }
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override {
    Promise promise = promise_of(node.input(), delivery);
    promise.multiply(count_.value_or(kEndless));
    return promise;
  }

 protected:
  [[nodiscard]] StagePtr move(StagePtr input, std::uint64_t size, const Compiler&) const override {
    return routed_stage(
        std::move(input), [size, rounds = rounds()](const Ask& ask, std::uint64_t position) {
          const std::uint64_t round = position / size;
          return Target{0,
                        {ask.turn.pass, nested_round(ask.turn.round, rounds, round), ask.turn.lap},
                        position - round * size};
        });
  }
  [[nodiscard]] FlowPtr move(FlowPtr input, const Compiler&) const override {
    const ElementSpec spec = input->spec();
    return series_flow(series<OverRows>(std::move(input)), spec);
  }
  [[nodiscard]] StepFlowPtr move(StepFlowPtr input) const override {
    return series_flow(series<OverSteps>(std::move(input)));
  }

 private:
  [[nodiscard]] std::uint64_t rounds() const { return count_.value_or(kEndlessRounds); }
  template <typename Kind>
  [[nodiscard]] Series<Kind> series(std::unique_ptr<const typename Kind::InputFlow> input) const {
    Series<Kind> series;
    series.parts.push_back(std::move(input));
    series.rounds = rounds();
    return series;
  }

  const std::optional<std::uint64_t> count_;  // nothing: forever
};

}  // namespace

Dataset Dataset::repeat(std::int64_t count) const {
  const auto rounds = count_or_all("repeat", count);
  if (cardinality().is_endless()) return rounds == 0U ? take(0) : *this;
  Node node = after(*this, std::make_shared<const Repeat>(rounds));
  if (cardinality().is_unknown()) return make_node(std::move(node));
  const std::uint64_t each = cardinality().count();
  std::uint64_t total = 0;
  if (!rounds) {
    if (each > 0) node.size = Cardinality::endless();
  } else if (__builtin_mul_overflow(each, *rounds, &total)) {
    refuse_count("repeat", each, "elements, repeated");
  } else {
    node.size = Cardinality::of(total);
  }
  return make_counted("repeat", std::move(node));
}

Dataset parse_repeat(const Parsed& parsed) {
  return parsed.input().repeat(parsed.number("count"));
}

}  // namespace penstock
