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
#include "verb/map.h"
#include "verb/staged_for_tests.h"
#include "verb/values_for_tests.h"

namespace penstock {
namespace {

/// A stage whose rows differ in each turn, and which counts the rows it computes.
class CountingStage final : public Stage {
 public:
  CountingStage(std::uint64_t* made, const ElementSpec& spec)
      : Stage(spec, IdSpace{{{0, 0}}}), made_(made) {}

  void identify(const Ask& ask, std::uint64_t* ids, const Context&) const override {
    std::ranges::copy(ask.positions, ids);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context&) const override {
    *made_ += out.rows;
    for (std::size_t row = 0; row < out.rows; ++row) {
      const std::uint64_t value =
          ask.turn.pass * 10'000 + ask.turn.round * 100 + ask.positions[row];
      out.identity.sample_id[row] = ask.positions[row];
      out.identity.occurrence[row] = ask.positions[row] % 3;  // as with other repeats below
      if (write_row(out, row, Tensor::scalar(static_cast<std::int64_t>(value)))) return Failure{};
    }
    return {};
  }

 private:
  std::uint64_t* made_;
};

struct CacheCase {
  std::uint64_t made = 0;
  StagePtr stage;
  CacheCase(std::uint64_t bytes_max, const ElementSpec& spec)
      : stage(stage_of(
            from_stage([this, spec] { return std::make_unique<CountingStage>(&made, spec); }, 100)
                .repeat(3)
                .cache({.bytes_max = bytes_max}))) {}
};

TEST(CacheStageTest, RowsAreComputedOnceInTheFirstTurn) {
  for (const ElementSpec& spec : {kNumber, ElementSpec::unknown()}) {
    CacheCase cache(UINT64_MAX, spec);
    const std::vector<std::int64_t> expected = {4, 0, 77};
    EXPECT_EQ(values_of(*cache.stage, {.pass = 5, .round = 2}, {4, 0, 77}).values, expected);
    EXPECT_EQ(cache.made, 3U);
    EXPECT_EQ(values_of(*cache.stage, {.pass = 6, .round = 1}, {4, 0, 77}).values, expected);
    EXPECT_EQ(cache.made, 3U);
    EXPECT_EQ(values_of(*cache.stage, {}, {77, 5, 4}).values,
              (std::vector<std::int64_t>{77, 5, 4}));
    EXPECT_EQ(cache.made, 4U);
  }
}

TEST(CacheStageTest, EachRoundAddsOccurrences) {
  CacheCase cache(UINT64_MAX, kNumber);
  for (std::uint64_t round = 0; round < 4; ++round) {
    const Values got = values_of(*cache.stage, {.pass = 0, .round = round}, {4, 5, 6});
    EXPECT_EQ(got.occurrences, (Numbers{round * 3 + 1, round * 3 + 2, round * 3}));
    EXPECT_EQ(got.ids, (Numbers{4, 5, 6}));
  }
}

TEST(CacheStageTest, RowsThatDoNotFitAreComputedAgainAndAreTheSame) {
  CacheCase cache(0, kNumber);
  for (std::uint64_t pass = 0; pass < 3; ++pass)
    EXPECT_EQ(values_of(*cache.stage, {.pass = pass, .round = 0}, {4, 0}).values,
              (std::vector<std::int64_t>{4, 0}));
  EXPECT_EQ(cache.made, 6U);
}

TEST(CacheStageTest, AFailedRowIsComputedAgain) {
  int calls = 0;
  const auto fails_once = [&calls](std::int64_t x) {
    if (calls++ == 0) throw std::runtime_error("once");
    return x;
  };
  const auto op = make_column_op(detail::make_column_fn(fails_once), "");
  const StagePtr stage = stage_of(add_map(Dataset::range(100), op, 0).cache());
  EXPECT_EQ(failure(*stage, {4}).sample, (SampleKey{0, 4}));
  EXPECT_EQ(values_of(*stage, {}, {4}).values, (std::vector<std::int64_t>{4}));
}

TEST(CacheStageTest, AFailureAmongStoredRowsHasTheRightRowNumber) {
  const auto fails_at_nine = [](std::int64_t x) {
    if (x == 9) throw std::runtime_error("nine");
    return x;
  };
  const auto op = make_column_op(detail::make_column_fn(fails_at_nine), "");
  const StagePtr stage = stage_of(add_map(Dataset::range(100), op, 0).cache());
  values_of(*stage, {}, {4, 5});
  Scratch scratch;
  const Numbers positions{4, 5, 6, 9, 7};
  const ScratchBlock block(kNumber, positions.size(), scratch);
  auto done = stage->produce({{}, positions}, block.view(), scratch);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 3U);
}

}  // namespace
}  // namespace penstock
