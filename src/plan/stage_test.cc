#include "plan/stage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sample/rows.h"

namespace penstock {
namespace {

/// Rows whose values are their position and round.
class Positions final : public Stage {
 public:
  Positions() : Stage(ElementSpec::single(Dtype::u64), IdSpace{{{0, 0}}}) {}

  void identify(const Ask& ask, std::uint64_t* ids, const Context&) const override {
    std::ranges::copy(ask.positions, ids);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context&) const override {
    if (ask.turn.pass == 9) return Failure{"pass 9 is broken", {}, {}, nullptr, 1};
    auto* const values = reinterpret_cast<std::uint64_t*>(out.columns[0].data);
    for (std::size_t row = 0; row < out.rows; ++row) {
      values[row] = ask.turn.round * 100 + ask.positions[row];
      out.identity.sample_id[row] = ask.positions[row];
    }
    return {};
  }
};

const std::vector<std::uint64_t> kPositions = {4, 0, 7};

TEST(StageTest, RowsAreWrittenDirectlyToATypedBlock) {
  Scratch scratch;
  const Positions stage;
  const ScratchBlock block(stage.spec(), 3, scratch);
  ASSERT_TRUE(stage.produce({{0, 2}, kPositions}, block.view(), scratch));
  const Block rows(block.view());
  const auto values = rows.column<std::uint64_t>();
  EXPECT_EQ(std::vector(values.begin(), values.end()), (std::vector<std::uint64_t>{204, 200, 207}));
}

TEST(StageTest, RowsOfAnUnknownSpecBecomeSamplesThatOutliveTheirBlock) {
  Scratch scratch;
  std::vector<Sample> kept;
  {
    const ScratchBlock block(ElementSpec::unknown(), 3, scratch);
    ASSERT_TRUE(Positions().produce({{0, 2}, kPositions}, block.view(), scratch));
    EXPECT_EQ(block.view().identity.sample_id[2], 7U);
    for (std::size_t row = 0; row < 3; ++row) kept.push_back(block.view().samples[row]);
  }
  scratch = Scratch();
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_EQ(kept[row].tensor().item<std::uint64_t>(), 200 + kPositions[row]);
}

TEST(StageTest, AFailureIsReturnedForTypedAndUntypedBlocks) {
  Scratch scratch;
  for (const ElementSpec& spec : {ElementSpec::single(Dtype::u64), ElementSpec::unknown()}) {
    const ScratchBlock block(spec, 3, scratch);
    auto done = Positions().produce({{9, 0}, kPositions}, block.view(), scratch);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.failure().message, "pass 9 is broken");
  }
}

TEST(IdSpaceTest, ASampleBelongsToTheLastSourceThatStartsAtOrBeforeIt) {
  // Source 4 is empty: its ids start where those of source 5 do.
  const IdSpace ids{{{0, 3}, {10, 4}, {10, 5}, {25, 6}}};
  const std::vector<std::pair<std::uint64_t, SampleKey>> expected = {
      {0, {3, 0}}, {9, {3, 9}}, {10, {5, 0}}, {24, {5, 14}}, {25, {6, 0}}, {99, {6, 74}}};
  for (const auto& [id, key] : expected) EXPECT_EQ(ids.key(id), key) << id;
}

TEST(AtSampleTest, AFailureNamesItsSampleOnce) {
  Scratch scratch;
  const ScratchBlock block(ElementSpec::single(Dtype::u64), 3, scratch);
  for (std::uint64_t row = 0; row < 3; ++row) block.view().identity.sample_id[row] = 20 + row;
  const IdSpace ids{{{0, 0}, {21, 1}}};
  Failure failure{"broken", {}, {}, nullptr, 2};
  EXPECT_EQ(at_sample(failure, ids, block.view()).where.sample, (SampleKey{1, 1}));
  failure.where.sample = SampleKey{7, 7};
  EXPECT_EQ(at_sample(failure, ids, block.view()).where.sample, (SampleKey{7, 7}));
  EXPECT_EQ(at_sample({"broken", {}, {}, nullptr, 3}, ids, block.view()).where.sample,
            std::nullopt);
}

}  // namespace
}  // namespace penstock
