#include <fmt/format.h>

#include "plan/moved_stage.h"
#include "plan/slice_flow.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

class Shard final : public Move {
 public:
  Shard(std::uint64_t count, std::uint64_t index) : count_(count), index_(index) {}
  [[nodiscard]] Words words() const override {
    return {"shard", fmt::format("shard({}, {})", count_, index_)};
  }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.counts_steps = true, .hides_rows = true};
  }
  [[nodiscard]] Json arguments() const override { return {{"count", count_}, {"index", index_}}; }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().shard(static_cast<std::int64_t>(count_),
                                static_cast<std::int64_t>(index_));
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    return walk.of(node.input()).sharded(count_, index_);
  }

 protected:
  [[nodiscard]] StagePtr move(StagePtr input, std::uint64_t, const Compiler&) const override {
    if (index_ == 0 && count_ == 1) return input;
    return moved_stage(std::move(input),
                       [first = index_, stride = count_](const Ask& ask, Positions out) {
                         for (std::size_t i = 0; i < out.size(); ++i)
                           out[i] = first + stride * ask.positions[i];
                       });
  }
  [[nodiscard]] FlowPtr move(FlowPtr input, const Compiler&) const override {
    return slice_flow(std::move(input), {.first = index_, .stride = count_});
  }
  [[nodiscard]] StepFlowPtr move(StepFlowPtr input) const override {
    return slice_flow(std::move(input), {.first = index_, .stride = count_});
  }

 private:
  const std::uint64_t count_;
  const std::uint64_t index_;
};

}  // namespace

Dataset Dataset::shard(std::int64_t count, std::int64_t index) const {
  if (count < 1) throw ConfigError(fmt::format("shard: count must be positive, got {}", count));
  if (index < 0 || index >= count)
    throw ConfigError(fmt::format("shard: index must be in 0..{}, got {}", count - 1, index));
  const auto shards = static_cast<std::uint64_t>(count);
  const auto which = static_cast<std::uint64_t>(index);
  Node node = after(*this, std::make_shared<const Shard>(shards, which));
  if (cardinality().is_counted()) {
    const std::uint64_t all = cardinality().count();
    node.size = Cardinality::of(all > which ? (all - which - 1) / shards + 1 : 0);
  }
  return make_node(std::move(node));
}

Dataset parse_shard(const Parsed& parsed) {
  return parsed.input().shard(parsed.number("count"), parsed.number("index"));
}

}  // namespace penstock
