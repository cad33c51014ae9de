#pragma once
// For tests of verbs: datasets that start with a stage of the test, and rows by position.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "plan/program.h"
#include "sample/rows.h"
#include "verb/kinds.h"

namespace penstock {

using Numbers = std::vector<std::uint64_t>;

/// Starts with the stage that `make()` returns.
class FromStage final : public Origin {
 public:
  FromStage(std::function<StagePtr()> make, std::uint64_t size)
      : make_(std::move(make)), size_(size) {}
  [[nodiscard]] Words words() const override { return {"staged", "staged()"}; }
  [[nodiscard]] Json arguments() const override { return Json::object(); }
  [[nodiscard]] StagePtr samples(Compiler&, const Node&, std::uint64_t) const override {
    return make_();
  }
  [[nodiscard]] Promise promise(const Node&, const Delivery&) const override {
    return {{{size_, 1}}};
  }
  [[nodiscard]] std::uint64_t id_space(const Node&) const override { return size_; }

 private:
  const std::function<StagePtr()> make_;
  const std::uint64_t size_;
};

inline Dataset from_stage(std::function<StagePtr()> make, std::uint64_t size) {
  Node node;
  node.spec = make()->spec();
  node.size = Cardinality::of(size);
  node.verb = std::make_shared<const FromStage>(std::move(make), size);
  return make_node(std::move(node));
}

struct Asked {
  std::uint64_t pass;
  std::uint64_t round;
  Numbers positions;
  bool operator==(const Asked&) const = default;
};

/// Row p is the number tag + p; records its calls. Fails at position 13.
class Tagged final : public Stage {
 public:
  Tagged(std::uint64_t tag, std::vector<Asked>* asked, bool known)
      : Stage(known ? ElementSpec::single(Dtype::u64) : ElementSpec::unknown(),
              IdSpace{{{tag, static_cast<std::uint32_t>(tag)}}}),
        tag_(tag),
        asked_(asked) {}

  void identify(const Ask& ask, std::uint64_t* ids, const Context&) const override {
    std::ranges::copy(ask.positions, ids);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context&) const override {
    if (asked_ != nullptr)
      asked_->push_back(
          {ask.turn.pass, ask.turn.round, {ask.positions.begin(), ask.positions.end()}});
    for (std::size_t row = 0; row < out.rows; ++row) {
      if (ask.positions[row] == 13) return Failure{"13 is broken", {}, {}, nullptr, row};
      out.identity.sample_id[row] = tag_ + ask.positions[row];
      if (out.identity.occurrence != nullptr) out.identity.occurrence[row] = ask.turn.round;
      if (write_row(out, row, Tensor::scalar(tag_ + ask.positions[row]))) return Failure{};
    }
    return {};
  }

 private:
  std::uint64_t tag_;
  std::vector<Asked>* asked_;
};

/// `size` numbers from `tag` on.
inline Dataset tagged(std::uint64_t tag, std::uint64_t size, std::vector<Asked>* asked = nullptr,
                      bool known = true) {
  return from_stage([=] { return std::make_unique<Tagged>(tag, asked, known); }, size);
}

inline StagePtr stage_of(const Dataset& dataset) {
  return compile_samples(*dataset.node(), {});
}

struct Got {
  std::vector<Numbers> fields;  // by column, as 64-bit numbers
  Numbers ids;
  Numbers occurrences;
};

inline Got ask(const Stage& stage, Turn turn, const Numbers& positions) {
  Scratch scratch;
  const Scratch::Frame frame(scratch);
  const ScratchBlock block(stage.spec(), positions.size(), scratch);
  const auto done = stage.produce({turn, positions}, block.view(), scratch);
  EXPECT_TRUE(done.ok());
  Got got;
  for (const Column& column : block.view().columns) {
    const auto* const values = reinterpret_cast<const std::uint64_t*>(column.data);
    got.fields.emplace_back(values, values + positions.size());
  }
  const Identity& identity = block.view().identity;
  got.ids.assign(identity.sample_id, identity.sample_id + positions.size());
  got.occurrences.assign(identity.occurrence, identity.occurrence + positions.size());
  return got;
}

inline Got ask(const Dataset& dataset, Turn turn, const Numbers& positions) {
  return ask(*stage_of(dataset), turn, positions);
}
inline Numbers first_field(const Dataset& dataset, Turn turn, const Numbers& positions) {
  return ask(dataset, turn, positions).fields.at(0);
}

inline Numbers up_to(std::uint64_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return numbers;
}

/// The message of the ConfigError that building the dataset throws.
inline std::string refusal(const std::function<Dataset()>& make) {
  try {
    (void)make();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "it was accepted";
}

}  // namespace penstock
