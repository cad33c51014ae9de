#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "penstock/detail/function.h"
#include "plan/stages.h"
#include "verb/map.h"
#include "verb/staged_for_tests.h"
#include "verb/values_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// Row p is the number p.
class Counted final : public Stage {
 public:
  explicit Counted(SourcePlace place)
      : Stage(kNumber, IdSpace{{{place.first_id, place.ordinal}}}), first_id_(place.first_id) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context&) const override {
    for (std::size_t i = 0; i < ask.positions.size(); ++i) ids[i] = first_id_ + ask.positions[i];
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    identify(ask, out.identity.sample_id, context);
    for (std::size_t row = 0; row < out.rows; ++row) {
      if (out.identity.occurrence != nullptr) out.identity.occurrence[row] = ask.turn.round;
      if (write_row(out, row, Tensor::scalar(static_cast<std::int64_t>(ask.positions[row]))))
        return Failure{};
    }
    return {};
  }

 private:
  std::uint64_t first_id_;
};
StagePtr numbers(SourcePlace place = {}) {
  return std::make_unique<Counted>(place);
}

TEST(MapStageTest, TheFunctionReceivesTheRowsOfItsInput) {
  const auto op = make_column_op(detail::make_column_fn([](std::int64_t x) { return x * 10; }), "");
  const Values got =
      values_of(*map_stage(numbers({.first_id = 50}), op, kNumber, {}), {0, 2}, {7, 0});
  EXPECT_EQ(got.values, (std::vector<std::int64_t>{70, 0}));
  EXPECT_EQ(got.ids, (Numbers{57, 50}));
  EXPECT_EQ(got.occurrences, (Numbers{2, 2}));
}

TEST(MapStageTest, AFailureNamesTheSampleAndTheOp) {
  const auto fails_at_two = [](std::int64_t x) {
    if (x == 2) throw std::runtime_error("two");
    return x;
  };
  const auto op = make_column_op(detail::make_column_fn(fails_at_two), "");
  const StagePtr stage =
      map_stage(numbers({.ordinal = 3, .first_id = 50}), op, kNumber, {"map#1", 0, 0});
  EXPECT_EQ(failure(*stage, {4, 2}).sample, (SampleKey{3, 2}));
  EXPECT_EQ(failure(*stage, {4, 2}).op, "map#1");
}

TEST(MapStageTest, TheInnermostFailedFunctionOfAChainIsNamed) {
  const auto fails = [](std::int64_t) -> std::int64_t { throw std::runtime_error("always"); };
  const auto inner = make_column_op(detail::make_column_fn(fails), "");
  const auto outer = make_column_op(detail::make_column_fn([](std::int64_t x) { return x; }), "");
  const StagePtr stage = map_stage(map_stage(numbers(), inner, kNumber, {.title = "inner"}), outer,
                                   kNumber, {.title = "outer"});
  EXPECT_EQ(failure(*stage, {0}).op, "inner");
}

TEST(MapStageTest, ASampleWithOtherFieldsFailsAndTheMessageHasBothSpecs) {
  const auto grows_at_two = [](const Sample& sample) {
    const auto x = sample.tensor().item<std::int64_t>();
    return x == 2 ? Sample(Tensor::of(std::vector<std::int64_t>{2, 2})) : Sample(Tensor::scalar(x));
  };
  const auto op = make_sample_op(detail::make_sample_fn(grows_at_two), {});
  const StagePtr stage = map_stage(numbers(), op, ElementSpec::unknown(), {.title = "map#0"});
  EXPECT_EQ(values_of(*stage, {}, {4, 1}).values, (std::vector<std::int64_t>{4, 1}));
  EXPECT_EQ(failure(*stage, {4, 2}).sample, (SampleKey{0, 2}));
  try {
    values_of(*stage, {}, {2});
    ADD_FAILURE() << "nothing failed";
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("i64[2]"), HasSubstr("i64[]")));
  }
}

struct DrawKey {
  std::uint64_t seed = 1;
  std::uint64_t ordinal = 0;
  Turn turn = {.pass = 2, .round = 3};
  SourcePlace source = {};
};

std::vector<std::int64_t> draws(const DrawKey& key, const Numbers& positions) {
  const auto draw = [](std::int64_t, Rng& rng) { return static_cast<std::int64_t>(rng()); };
  const StagePtr stage =
      map_stage(numbers(key.source), make_column_op(detail::make_column_fn(draw), ""), kNumber,
                {"map#0", key.seed, key.ordinal});
  return values_of(*stage, key.turn, positions).values;
}

TEST(MapStageTest, RandomNumbersDoNotDependOnTheBlock) {
  const auto whole = draws({}, {5, 6, 7, 8});
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(draws({}, {5 + i})[0], whole[i]);
  EXPECT_EQ(draws({.source = {.ordinal = 0, .first_id = 50}}, {5, 6, 7, 8}), whole);
}

TEST(MapStageTest, EachPartOfTheKeyChangesTheRandomNumbers) {
  std::set<std::int64_t> seen;
  const std::vector<DrawKey> keys = {{},
                                     {.seed = 2},
                                     {.ordinal = 1},
                                     {.turn = {.pass = 3, .round = 3}},
                                     {.turn = {.pass = 2, .round = 4}},
                                     {.source = {.ordinal = 1, .first_id = 0}}};
  for (const DrawKey& key : keys)
    for (const std::int64_t drawn : draws(key, {5, 6})) EXPECT_TRUE(seen.insert(drawn).second);
  EXPECT_EQ(seen.size(), 12U);
}

TEST(MapTest, AfterBatchAFunctionReceivesWholeBatchesUnlessItIsRowWise) {
  const Dataset batches = tagged(0, 4).batch(2);
  const auto same = [](const Sample& sample) { return sample; };
  const auto whole = [](const Dataset& data) { return data.node()->facts().sees_batches; };
  EXPECT_TRUE(whole(batches.map(same)));
  EXPECT_FALSE(whole(batches.map(same, {.row_wise = true})));
  EXPECT_FALSE(whole(batches.map([](std::uint64_t x) { return x; })));
  EXPECT_FALSE(whole(batches.map(cast(Dtype::f32))));
  EXPECT_FALSE(whole(tagged(0, 4).map(same)));
}

}  // namespace
}  // namespace penstock
