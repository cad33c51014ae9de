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

#include "plan/stages.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<std::uint64_t>;

const ElementSpec kNumber = ElementSpec::single(Dtype::i64);

struct Got {
  std::vector<std::int64_t> values;
  Numbers ids;
  Numbers occurrences;
};

Got ask(const Stage& stage, Turn turn, const Numbers& positions) {
  Scratch scratch;
  const Scratch::Frame frame(scratch);
  const ScratchBlock block(kNumber, positions.size(), scratch);
  auto done = stage.produce({turn, positions}, block.view(), scratch);
  if (!done) done.failure().raise();
  const auto values = Block(block.view()).column<std::int64_t>();
  const Identity& identity = block.view().identity;
  return {{values.begin(), values.end()},
          {identity.sample_id, identity.sample_id + positions.size()},
          {identity.occurrence, identity.occurrence + positions.size()}};
}

/// Where the SampleError says it happened that asking ends with.
Where failure(const Stage& stage, const Numbers& positions) {
  try {
    ask(stage, {}, positions);
  } catch (const SampleError& error) {
    return error.where();
  }
  ADD_FAILURE() << "nothing failed";
  return {};
}

StagePtr numbers(SourcePlace place = {}) {
  return source_stage(make_range(0, 100, 1), kNumber, place);
}

TEST(SourceStageTest, RowsHaveTheIdsOfTheirPlaceAndOccurOnceARound) {
  const Got got = ask(*numbers({.ordinal = 3, .first_id = 50}), {.pass = 9, .round = 4}, {7, 0});
  EXPECT_EQ(got.values, (std::vector<std::int64_t>{7, 0}));
  EXPECT_EQ(got.ids, (Numbers{57, 50}));
  EXPECT_EQ(got.occurrences, (Numbers{4, 4}));
}

TEST(SourceStageTest, AFailureNamesTheSampleAndTheSource) {
  const auto fails_at_two = [](std::uint64_t index) {
    if (index == 2) throw std::runtime_error("two");
    return static_cast<std::int64_t>(index);
  };
  const StagePtr stage = source_stage(make_index(5, detail::make_index_fn(fails_at_two), "five"),
                                      kNumber, {.ordinal = 3, .first_id = 50});
  const Where where = failure(*stage, {4, 2});
  EXPECT_EQ(where.sample, (SampleKey{3, 2}));
  EXPECT_EQ(where.op, "from_index(5, five)");
}

/// Sample i is byte i of the file that this program is.
class OwnBytes final : public Source {
 public:
  [[nodiscard]] std::string word() const override { return "own_bytes"; }
  [[nodiscard]] std::uint64_t size() const override { return 1ULL << 50; }
  [[nodiscard]] const ElementSpec& spec() const override { return kNumber; }
  [[nodiscard]] std::string describe() const override { return "own_bytes()"; }
  void identify(Digest&) const override {}
  [[nodiscard]] std::string file_of(std::uint64_t) const override { return "/proc/self/exe"; }
  [[nodiscard]] bool has_reads() const override { return true; }
  void reads(std::uint64_t number, std::vector<Read>& reads) const override {
    reads.push_back({"/proc/self/exe", number, 1});
  }
  Result<void> decode(std::span<const std::uint64_t>, std::span<Bytes> bytes,
                      const BlockView& out) const override {
    *reinterpret_cast<std::int64_t*>(out.columns[0].data) = static_cast<std::int64_t>(bytes[0][0]);
    return {};
  }
};

TEST(SourceStageTest, WhatASourceReadsIsThereWhenItDecodes) {
  const StagePtr stage = source_stage(std::make_shared<OwnBytes>(), kNumber, {});
  EXPECT_EQ(ask(*stage, {}, {3, 1, 2}).values, (std::vector<std::int64_t>{'F', 'E', 'L'}));
}

TEST(SourceStageTest, AReadThatFailsNamesTheSampleAndTheFile) {
  const StagePtr stage = source_stage(std::make_shared<OwnBytes>(), kNumber, {});
  const Where where = failure(*stage, {1, 1ULL << 49});
  EXPECT_EQ(where.sample, (SampleKey{0, 1ULL << 49}));
  EXPECT_EQ(where.op, "own_bytes()");
  EXPECT_EQ(where.file, "/proc/self/exe");
}

TEST(SourceStageTest, AMapThatFailsNamesTheFileOfTheSample) {
  const auto fails = [](std::int64_t) -> std::int64_t { throw std::runtime_error("no"); };
  const auto op = make_column_op(detail::make_column_fn(fails), "");
  const StagePtr stage =
      map_stage(source_stage(std::make_shared<OwnBytes>(), kNumber, {}), op, kNumber, {});
  EXPECT_EQ(failure(*stage, {1}).file, "/proc/self/exe");
}

TEST(MapStageTest, TheFunctionSeesItsInputsRows) {
  const auto op = make_column_op(detail::make_column_fn([](std::int64_t x) { return x * 10; }), "");
  const Got got = ask(*map_stage(numbers({.first_id = 50}), op, kNumber, {}), {0, 2}, {7, 0});
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

TEST(MapStageTest, AFunctionInnermostInAChainIsTheOneThatIsNamed) {
  const auto fails = [](std::int64_t) -> std::int64_t { throw std::runtime_error("always"); };
  const auto inner = make_column_op(detail::make_column_fn(fails), "");
  const auto outer = make_column_op(detail::make_column_fn([](std::int64_t x) { return x; }), "");
  const StagePtr stage = map_stage(map_stage(numbers(), inner, kNumber, {.title = "inner"}), outer,
                                   kNumber, {.title = "outer"});
  EXPECT_EQ(failure(*stage, {0}).op, "inner");
}

TEST(MapStageTest, ASampleUnlikeTheOthersIsAFailureWithBothSides) {
  const auto grows_at_two = [](const Sample& sample) {
    const auto x = sample.tensor().item<std::int64_t>();
    return x == 2 ? Sample(Tensor::of(std::vector<std::int64_t>{2, 2})) : Sample(Tensor::scalar(x));
  };
  const auto op = make_sample_op(detail::make_sample_fn(grows_at_two), {});
  const StagePtr stage = map_stage(numbers(), op, ElementSpec::unknown(), {.title = "map#0"});
  EXPECT_EQ(ask(*stage, {}, {4, 1}).values, (std::vector<std::int64_t>{4, 1}));
  EXPECT_EQ(failure(*stage, {4, 2}).sample, (SampleKey{0, 2}));
  try {
    ask(*stage, {}, {2});
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
  return ask(*stage, key.turn, positions).values;
}

TEST(MapStageTest, RandomNumbersDoNotDependOnTheBlock) {
  const auto whole = draws({}, {5, 6, 7, 8});
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(draws({}, {5 + i})[0], whole[i]);
  EXPECT_EQ(draws({.source = {.ordinal = 0, .first_id = 50}}, {5, 6, 7, 8}), whole);
}

TEST(MapStageTest, EachPartOfTheKeyThatDiffersGivesOtherRandomNumbers) {
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

/// A stage whose rows differ in each turn, and which counts how many it made.
class Counting final : public Stage {
 public:
  Counting(std::uint64_t* made, const ElementSpec& spec)
      : Stage(spec, IdSpace{{{0, 0}}}), made_(made) {}

  void identify(const Ask& ask, std::uint64_t* ids, Scratch&) const override {
    std::ranges::copy(ask.positions, ids);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch&) const override {
    *made_ += out.rows;
    for (std::size_t row = 0; row < out.rows; ++row) {
      const std::uint64_t value =
          ask.turn.pass * 10'000 + ask.turn.round * 100 + ask.positions[row];
      out.identity.sample_id[row] = ask.positions[row];
      out.identity.occurrence[row] = ask.positions[row] % 3;  // as repeats below would
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
      : stage(cache_stage(std::make_unique<Counting>(&made, spec),
                          std::make_shared<RowStore>(bytes_max), 3)) {}
};

TEST(CacheStageTest, RowsAreMadeOnceAsTheFirstTurnHasThem) {
  for (const ElementSpec& spec : {kNumber, ElementSpec::unknown()}) {
    CacheCase cache(UINT64_MAX, spec);
    const std::vector<std::int64_t> expected = {4, 0, 77};
    EXPECT_EQ(ask(*cache.stage, {.pass = 5, .round = 2}, {4, 0, 77}).values, expected);
    EXPECT_EQ(cache.made, 3U);
    EXPECT_EQ(ask(*cache.stage, {.pass = 6, .round = 1}, {4, 0, 77}).values, expected);
    EXPECT_EQ(cache.made, 3U);
    EXPECT_EQ(ask(*cache.stage, {}, {77, 5, 4}).values, (std::vector<std::int64_t>{77, 5, 4}));
    EXPECT_EQ(cache.made, 4U);
  }
}

TEST(CacheStageTest, EachRoundCountsAsFurtherOccurrences) {
  CacheCase cache(UINT64_MAX, kNumber);
  for (std::uint64_t round = 0; round < 4; ++round) {
    const Got got = ask(*cache.stage, {.pass = 0, .round = round}, {4, 5, 6});
    EXPECT_EQ(got.occurrences, (Numbers{round * 3 + 1, round * 3 + 2, round * 3}));
    EXPECT_EQ(got.ids, (Numbers{4, 5, 6}));
  }
}

TEST(CacheStageTest, RowsThatFindNoRoomAreMadeAgainAndAreTheSame) {
  CacheCase cache(0, kNumber);
  for (std::uint64_t pass = 0; pass < 3; ++pass)
    EXPECT_EQ(ask(*cache.stage, {.pass = pass, .round = 0}, {4, 0}).values,
              (std::vector<std::int64_t>{4, 0}));
  EXPECT_EQ(cache.made, 6U);
}

TEST(CacheStageTest, ARowThatFailedIsTriedAgain) {
  int calls = 0;
  const auto fails_once = [&calls](std::int64_t x) {
    if (calls++ == 0) throw std::runtime_error("once");
    return x;
  };
  const auto op = make_column_op(detail::make_column_fn(fails_once), "");
  const StagePtr stage = cache_stage(map_stage(numbers(), op, kNumber, {.title = "map#0"}),
                                     std::make_shared<RowStore>(UINT64_MAX), 1);
  EXPECT_EQ(failure(*stage, {4}).sample, (SampleKey{0, 4}));
  EXPECT_EQ(ask(*stage, {}, {4}).values, (std::vector<std::int64_t>{4}));
}

TEST(CacheStageTest, AFailureBesideRowsThatAreInIsCountedAmongAllRows) {
  const auto fails_at_nine = [](std::int64_t x) {
    if (x == 9) throw std::runtime_error("nine");
    return x;
  };
  const auto op = make_column_op(detail::make_column_fn(fails_at_nine), "");
  const StagePtr stage = cache_stage(map_stage(numbers(), op, kNumber, {.title = "map#0"}),
                                     std::make_shared<RowStore>(UINT64_MAX), 1);
  ask(*stage, {}, {4, 5});
  Scratch scratch;
  const Numbers positions{4, 5, 6, 9, 7};
  const ScratchBlock block(kNumber, positions.size(), scratch);
  auto done = stage->produce({{}, positions}, block.view(), scratch);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 3U);
}

}  // namespace
}  // namespace penstock
