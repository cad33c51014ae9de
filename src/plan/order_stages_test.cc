#include <gtest/gtest.h>

#include <algorithm>

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "order/permutation.h"
#include "plan/stages.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using Numbers = std::vector<std::uint64_t>;
struct Asked {
  std::uint64_t pass;
  std::uint64_t round;
  Numbers positions;
  bool operator==(const Asked&) const = default;
};

/// Row p is the number tag + p; notes what it is asked. Fails at position 13.
class Tagged final : public Stage {
 public:
  Tagged(std::uint64_t tag, std::vector<Asked>* asked, bool known = true)
      : Stage(known ? ElementSpec::single(Dtype::u64) : ElementSpec::unknown(),
              IdSpace{{{tag, static_cast<std::uint32_t>(tag)}}}),
        tag_(tag),
        asked_(asked) {}

  void identify(const Ask& ask, std::uint64_t* ids, Scratch&) const override {
    std::ranges::copy(ask.positions, ids);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch&) const override {
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

StagePtr tagged(std::uint64_t tag, std::vector<Asked>* asked = nullptr, bool known = true) {
  return std::make_unique<Tagged>(tag, asked, known);
}

struct Got {
  std::vector<Numbers> fields;  // by column
  Numbers ids;
  Numbers occurrences;
};

Got ask(const Stage& stage, Turn turn, const Numbers& positions) {
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

Numbers first_field(const Stage& stage, Turn turn, const Numbers& positions) {
  return ask(stage, turn, positions).fields.at(0);
}

Numbers up_to(std::uint64_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return numbers;
}

/// `left_size` elements of one, then those of another.
StagePtr two_parts(StagePtr left, std::uint64_t left_size, StagePtr right,
                   const ElementSpec& spec) {
  std::vector<StagePtr> parts;
  parts.push_back(std::move(left));
  parts.push_back(std::move(right));
  return concatenate_stage(std::move(parts), {left_size, kEndless}, spec);
}

TEST(StrideStageTest, PositionsAreMultipliedAndMoved) {
  EXPECT_EQ(first_field(*stride_stage(tagged(0), 0, 1), {}, {2, 0, 1}), (Numbers{2, 0, 1}));
  EXPECT_EQ(first_field(*stride_stage(tagged(0), 4, 1), {}, {2, 0, 1}), (Numbers{6, 4, 5}));
  EXPECT_EQ(first_field(*stride_stage(tagged(0), 2, 5), {}, {2, 0, 1}), (Numbers{12, 2, 7}));
}

TEST(ShuffleStageTest, EveryTurnHasTheOrderOfItsKey) {
  constexpr std::uint64_t kSize = 12;
  const StagePtr stage = shuffle_stage(tagged(0), kSize, {.seed = 5, .reshuffle = true});
  for (const Turn turn : {Turn{0, 0}, Turn{1, 0}, Turn{0, 1}, Turn{3, 2}}) {
    const Permutation order(kSize, {5, turn.pass, turn.round});
    Numbers expected = up_to(kSize);
    for (std::uint64_t& number : expected) number = order(number);
    EXPECT_EQ(first_field(*stage, turn, up_to(kSize)), expected);
  }
}

TEST(ShuffleStageTest, WithoutReshuffleEveryTurnHasTheFirstOrder) {
  const StagePtr once = shuffle_stage(tagged(0), 12, {.seed = 5, .reshuffle = false});
  const StagePtr anew = shuffle_stage(tagged(0), 12, {.seed = 5, .reshuffle = true});
  for (const Turn turn : {Turn{0, 0}, Turn{1, 0}, Turn{0, 7}})
    EXPECT_EQ(first_field(*once, turn, up_to(12)), first_field(*anew, {}, up_to(12)));
}

TEST(RepeatStageTest, EachRoundIsAskedForByItselfUnderItsOwnNumber) {
  std::vector<Asked> asked;
  const StagePtr stage = repeat_stage(tagged(0, &asked), 4, 3);
  const Got got = ask(*stage, {.pass = 2, .round = 5}, {2, 3, 4, 5, 11, 0});
  EXPECT_EQ(got.fields[0], (Numbers{2, 3, 0, 1, 3, 0}));
  EXPECT_EQ(got.occurrences, (Numbers{15, 15, 16, 16, 17, 15}));
  EXPECT_EQ(asked,
            (std::vector<Asked>{{2, 15, {2, 3}}, {2, 16, {0, 1}}, {2, 17, {3}}, {2, 15, {0}}}));
}

TEST(RepeatStageTest, RoundsOfNestedRepeatsAllDiffer) {
  std::vector<Asked> asked;
  const StagePtr stage = repeat_stage(repeat_stage(tagged(0, &asked), 2, 3), 6, 4);
  ask(*stage, {}, up_to(24));
  for (std::uint64_t i = 0; i < asked.size(); ++i) EXPECT_EQ(asked[i], (Asked{0, i, {0, 1}}));
  EXPECT_EQ(asked.size(), 12U);
}

TEST(ConcatenateStageTest, EachSideIsAskedForRunsOfItsOwnPositions) {
  std::vector<Asked> left;
  std::vector<Asked> right;
  const StagePtr stage =
      two_parts(tagged(100, &left), 3, tagged(200, &right), ElementSpec::single(Dtype::u64));
  const Got got = ask(*stage, {.pass = 1, .round = 2}, {1, 2, 3, 4, 0});
  EXPECT_EQ(got.fields[0], (Numbers{101, 102, 200, 201, 100}));
  EXPECT_EQ(got.ids, got.fields[0]);
  EXPECT_EQ(left, (std::vector<Asked>{{1, 2, {1, 2}}, {1, 2, {0}}}));
  EXPECT_EQ(right, (std::vector<Asked>{{1, 2, {0, 1}}}));
}

TEST(ConcatenateStageTest, IdsAreFoundAmongTheSourcesOfBothSides) {
  const StagePtr stage = two_parts(tagged(100), 3, tagged(200), ElementSpec::single(Dtype::u64));
  EXPECT_EQ(stage->ids().key(101), (SampleKey{100, 1}));
  EXPECT_EQ(stage->ids().key(201), (SampleKey{200, 1}));
}

TEST(ConcatenateStageTest, AFailureEndsTheBlock) {
  Scratch scratch;
  const StagePtr stage = two_parts(tagged(100), 20, tagged(200), ElementSpec::single(Dtype::u64));
  const ScratchBlock block(stage->spec(), 3, scratch);
  const Numbers positions = {12, 13, 20};
  const auto done = stage->produce({{}, positions}, block.view(), scratch);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.failure().message, "13 is broken");
}

TEST(ConcatenateStageTest, AFailureNamesTheRowOfTheBlockNotOfItsRun) {
  Scratch scratch;
  const StagePtr stage = two_parts(tagged(100), 20, tagged(200), ElementSpec::single(Dtype::u64));
  const ScratchBlock block(stage->spec(), 4, scratch);
  const Numbers positions = {11, 12, 20, 33};
  const auto done = stage->produce({{}, positions}, block.view(), scratch);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.failure().row, 3U);
}

ElementSpec pair_of(const Stage& left, const Stage& right) {
  return ElementSpec::tuple({left.spec(), right.spec()});
}

std::vector<StagePtr> parts(StagePtr left, StagePtr right) {
  std::vector<StagePtr> both;
  both.push_back(std::move(left));
  both.push_back(std::move(right));
  return both;
}

TEST(ZipStageTest, TheFirstPartSaysWhoTheRowsAre) {
  const ElementSpec spec = pair_of(*tagged(0), *tagged(0));
  const StagePtr stage = zip_stage(parts(tagged(100), tagged(200)), spec);
  const Got got = ask(*stage, {.pass = 0, .round = 3}, {5, 1});
  EXPECT_EQ(got.fields, (std::vector<Numbers>{{105, 101}, {205, 201}}));
  EXPECT_EQ(got.ids, (Numbers{105, 101}));
  EXPECT_EQ(got.occurrences, (Numbers{3, 3}));
}

TEST(ZipStageTest, PartsThatOnlyRunningShowsAreZippedAsSamples) {
  Scratch scratch;
  const StagePtr stage =
      zip_stage(parts(tagged(100), tagged(200, nullptr, false)), ElementSpec::unknown());
  const ScratchBlock block(ElementSpec::unknown(), 2, scratch);
  const Numbers positions = {5, 1};
  ASSERT_TRUE(stage->produce({{}, positions}, block.view(), scratch));
  for (std::size_t row = 0; row < 2; ++row) {
    const Sample& sample = block.view().samples[row];
    EXPECT_EQ(sample["0"].item<std::uint64_t>(), 100 + positions[row]);
    EXPECT_EQ(sample["1"].item<std::uint64_t>(), 200 + positions[row]);
    EXPECT_EQ(block.view().identity.sample_id[row], 100 + positions[row]);
  }
}

TEST(EnumerateStageTest, TheFirstFieldIsThePosition) {
  const ElementSpec spec =
      ElementSpec::tuple({ElementSpec::single(Dtype::i64), ElementSpec::single(Dtype::u64)});
  const Got got = ask(*enumerate_stage(tagged(100), spec), {}, {5, 1});
  EXPECT_EQ(got.fields, (std::vector<Numbers>{{5, 1}, {105, 101}}));
  EXPECT_EQ(got.ids, (Numbers{105, 101}));
}

TEST(UnbatchStageTest, RowsAreThoseOfTheStepsOneAfterTheOther) {
  const Steps left = Steps::leaf(0, {.count = 5, .batch = 2, .tail = TailRule::drop});
  const Steps right = Steps::leaf(1, {.count = 3, .batch = 2});
  const Steps steps = Steps::concatenated(left.repeated(2).sliced(1, kEndless), right);
  const StagePtr stage =
      unbatch_stage(parts(tagged(100), tagged(200)), steps, ElementSpec::single(Dtype::u64));
  const Got got = ask(*stage, {.pass = 0, .round = 1}, up_to(steps.rows()));
  EXPECT_EQ(got.fields[0], (Numbers{102, 103, 100, 101, 102, 103, 200, 201, 202}));
  EXPECT_EQ(got.occurrences, (Numbers{2, 2, 3, 3, 3, 3, 1, 1, 1}));
  EXPECT_EQ(stage->ids().key(202), (SampleKey{200, 2}));
}

// What is below is entered for each round or side, not for each row; a function may be dear to
// enter.
TEST(OrderStagesTest, RowsThatAreMixedGoTogether) {
  std::vector<Asked> asked;
  std::vector<Asked> right;
  const StagePtr repeated = shuffle_stage(repeat_stage(tagged(0, &asked), 12, 20), 240, {});
  const Got got = ask(*repeated, {}, up_to(240));
  EXPECT_EQ(asked.size(), 20U);
  Numbers rounds;
  for (const Asked& each : asked) rounds.push_back(each.round);
  std::ranges::sort(rounds);
  EXPECT_EQ(rounds, up_to(20));
  asked.clear();
  const StagePtr both = shuffle_stage(
      two_parts(tagged(0, &asked), 10, tagged(100, &right), ElementSpec::single(Dtype::u64)), 20,
      {});
  ask(*both, {}, up_to(20));
  EXPECT_EQ(asked.size() + right.size(), 2U);
}

TEST(OrderStagesTest, InOrderEachRunGoesStraightToItsPlace) {
  std::vector<Asked> asked;
  ask(*repeat_stage(tagged(0, &asked), 12, 20), {}, up_to(240));
  EXPECT_EQ(asked.size(), 20U);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(asked[i], (Asked{0, i, up_to(12)}));
}

TEST(OrderStagesTest, OfMixedRowsTheFirstFailureIsTold) {
  Scratch scratch;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const StagePtr mixed = shuffle_stage(repeat_stage(tagged(0), 20, 5), 100, {.seed = seed});
    const ScratchBlock block(mixed->spec(), 100, scratch);
    const auto done = mixed->produce({{}, up_to(100)}, block.view(), scratch);
    std::size_t first = 0;
    while (Permutation(100, {seed, 0, 0})(first) % 20 != 13) ++first;
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.failure().row, first);
    for (std::uint64_t row = 0; row < first; ++row)
      EXPECT_EQ(read_row(block.view(), row).tensor().item<std::uint64_t>(),
                Permutation(100, {seed, 0, 0})(row) % 20);
  }
}

// However a block is cut, the rows are the same.
TEST(OrderStagesTest, ABlockIsTheSameAsItsRowsAskedOneByOne) {
  const auto make = [] {
    StagePtr both = two_parts(shuffle_stage(tagged(100), 5, {.seed = 1}), 5,
                              stride_stage(tagged(200), 1, 2), ElementSpec::single(Dtype::u64));
    return shuffle_stage(repeat_stage(std::move(both), 9, 3), 27, {.seed = 2});
  };
  const StagePtr stage = make();
  const Got whole = ask(*stage, {.pass = 1, .round = 1}, up_to(27));
  for (std::uint64_t position = 0; position < 27; ++position) {
    const Got one = ask(*stage, {.pass = 1, .round = 1}, {position});
    EXPECT_EQ(one.fields[0][0], whole.fields[0][position]);
    EXPECT_EQ(one.ids[0], whole.ids[position]);
    EXPECT_EQ(one.occurrences[0], whole.occurrences[position]);
  }
}

TEST(ConcatenateStageTest, EachPositionOfManyPartsIsFoundInItsPart) {
  std::vector<StagePtr> parts;
  std::vector<std::uint64_t> ends;
  for (std::uint64_t part = 0; part < 40; ++part) {
    parts.push_back(tagged(1000 * part));
    ends.push_back((part == 0 ? 0 : ends.back()) + part % 3);  // every third one is empty
  }
  ends.back() = kEndless;
  const StagePtr stage = concatenate_stage(std::move(parts), ends, ElementSpec::single(Dtype::u64));
  for (std::uint64_t position = 0; position < 45; ++position) {
    std::uint64_t part = 0;
    while (ends[part] <= position) ++part;
    const std::uint64_t first = part == 0 ? 0 : ends[part - 1];
    EXPECT_EQ(first_field(*stage, {}, {position}).front(), 1000 * part + position - first)
        << position;
  }
}

TEST(RepeatStageTest, RoundsBelowManyRepeatsStayApart) {
  // Three endless repeats above each other: 2^96 rounds.
  std::set<std::uint64_t> rounds;
  for (std::uint64_t a = 0; a < 4; ++a)
    for (std::uint64_t b = 0; b < 4; ++b)
      for (std::uint64_t c = 0; c < 4; ++c)
        rounds.insert(nested_round(nested_round(a, kEndlessRounds, b), kEndlessRounds, c));
  EXPECT_EQ(rounds.size(), 64U);
  EXPECT_EQ(nested_round(3, 5, 2), 17U) << "where they fit they are counted through";
  EXPECT_EQ(nested_round(kEndlessRounds - 1, kEndlessRounds, kEndlessRounds - 1), UINT64_MAX);
}

}  // namespace
}  // namespace penstock
