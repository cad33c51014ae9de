// Steps of streams, and failed rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "penstock/dataset.h"
#include "plan/flows.h"
#include "plan/number_streams_for_tests.h"
#include "plan/program.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const auto kEven = [](std::int64_t x) { return x % 2 == 0; };

/// Pulls whole steps, as "leaf:values".
class StepPuller {
 public:
  StepPuller(const Program& program, Turn turn) : cursor_(program.stream->open(turn)) {}

  std::optional<std::string> pull() {
    Pulling pulling{scratch_};
    PulledStep step;
    auto more = cursor_->pull(step, pulling);
    if (!more) more.failure().raise();
    if (!*more) return std::nullopt;
    const BlockView rows = step.buffer->rows(0, step.rows);
    std::string text = std::to_string(step.leaf) + ":";
    for (std::size_t row = 0; row < step.rows; ++row)
      text += std::to_string(read_row(rows, row).leaves().front().item<std::int64_t>()) + ",";
    if (step.padded_to > 0) text += "of " + std::to_string(step.padded_to);
    return text;
  }
  std::vector<std::string> rest() {
    std::vector<std::string> steps;
    while (auto step = pull()) steps.push_back(*step);
    return steps;
  }
  Anchor save() { return saved(*cursor_); }
  void restore(const Anchor& anchor) { penstock::restore(*cursor_, anchor, {scratch_}); }

 private:
  StepCursorPtr cursor_;
  Scratch scratch_;
};

std::vector<std::string> steps_of(const Dataset& dataset) {
  const Program program = compile(*dataset.node(), {});
  return StepPuller(program, {0, 0}).rest();
}

TEST(StepFlowsTest, TheLastBatchIsShortDroppedOrPadded) {
  EXPECT_THAT(steps_of(generated(5).batch(2)), ElementsAre("0:0,1,", "0:2,3,", "0:4,"));
  EXPECT_THAT(steps_of(generated(5).batch(2, {.tail = Tail::drop})),
              ElementsAre("0:0,1,", "0:2,3,"));
  EXPECT_THAT(steps_of(generated(3).batch(2, {.tail = Tail::pad})),
              ElementsAre("0:0,1,of 2", "0:2,of 2"));
  EXPECT_THAT(steps_of(generated(4).batch(2)), ElementsAre("0:0,1,", "0:2,3,"));
  EXPECT_THAT(steps_of(generated(0).batch(2)), IsEmpty());
}

TEST(StepFlowsTest, StepsCanBeTakenSkippedShardedRepeatedAndConcatenated) {
  const Dataset five = generated(9).batch(2);
  EXPECT_THAT(steps_of(five.take(2)), ElementsAre("0:0,1,", "0:2,3,"));
  EXPECT_THAT(steps_of(five.take(0)), IsEmpty());
  EXPECT_THAT(steps_of(five.skip(3)), ElementsAre("0:6,7,", "0:8,"));
  EXPECT_THAT(steps_of(five.skip(-1)), IsEmpty());
  EXPECT_THAT(steps_of(five.shard(2, 1)), ElementsAre("0:2,3,", "0:6,7,"));
  EXPECT_THAT(steps_of(generated(3).batch(2).repeat(2)),
              ElementsAre("0:0,1,", "0:2,", "0:0,1,", "0:2,"));
  EXPECT_THAT(steps_of(generated(0).batch(2).repeat()), IsEmpty());
  EXPECT_THAT(steps_of(generated(3).batch(2).concatenate(Dataset::range(3).batch(2))),
              ElementsAre("0:0,1,", "0:2,", "1:0,1,", "1:2,"));
  EXPECT_THAT(steps_of(Dataset::range(1).batch(2).concatenate(generated(3).batch(2)).repeat(2)),
              ElementsAre("0:0,", "1:0,1,", "1:2,", "0:0,", "1:0,1,", "1:2,"));
}

TEST(StepFlowsTest, RestoreBeforeEveryStepDeliversTheRest) {
  const Dataset odd = generated(13).filter(kEven);
  const std::vector<Dataset> all = {
      generated(9).batch(2),
      odd.batch(3, {.tail = Tail::drop}),
      odd.batch(2, {.tail = Tail::pad}).repeat(2),
      odd.batch(2).skip(1).take(2),
      odd.batch(2).shard(2, 1).repeat(3),
      odd.batch(2).repeat(2).concatenate(Dataset::range(5).shuffle().batch(2)).repeat(2),
      odd.batch(3).unbatch().repeat(2).batch(4),
      odd.shuffle({.window = 4}).batch(3).unbatch().batch(2).concatenate(generated(4).batch(2)),
  };
  for (const Dataset& dataset : all) {
    SCOPED_TRACE(dataset.describe());
    const Program program = compile(*dataset.node(), {});
    const Turn turn{1, 0};
    StepPuller whole(program, turn);
    std::vector<Anchor> before{whole.save()};
    std::vector<std::string> steps;
    while (auto step = whole.pull()) {
      steps.push_back(*step);
      before.push_back(whole.save());
    }
    ASSERT_GE(steps.size(), 2U);
    for (std::size_t at = 0; at < before.size(); ++at) {
      StepPuller resumed(program, turn);
      resumed.restore(before[at]);
      EXPECT_EQ(resumed.rest(),
                std::vector(steps.begin() + static_cast<std::ptrdiff_t>(at), steps.end()));
    }
  }
}

// Each of 40 nested cursors may call its input at most once more after its end.
TEST(StepFlowsTest, NestedSkipsEndInTimeProportionalToTheirNumber) {
  Dataset steps = generated(3).batch(1);
  for (int i = 0; i < 40; ++i) steps = steps.skip(1);
  const Program program = compile(*steps.node(), {});
  const StepCursorPtr cursor = program.stream->open({0, 0});
  Scratch scratch;
  Pulling pulling{scratch};
  PulledStep step;
  const auto more = cursor->pull(step, pulling);
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(*more);
}

TEST(StepFlowsTest, ABatchOfEverythingAllocatesMemoryAsRowsArrive) {
  EXPECT_THAT(steps_of(generated(3).batch(INT64_MAX)), ElementsAre("0:0,1,2,"));
}

// Failed rows

struct Pulled {
  std::vector<std::int64_t> values;
  std::vector<Failure> failures;
};

/// All rows, one or several at a time, with failures collected.
Pulled pull_all(const Dataset& dataset, std::size_t at_once) {
  const FlowPtr flow = compile_flow(*dataset.node(), {});
  const CursorPtr cursor = flow->open({0, 0});
  Scratch scratch;
  RowFailures failures;
  Pulling pulling{scratch, &failures};
  Pulled pulled;
  while (true) {
    RowBuffer buffer(flow->spec());
    buffer.reserve(at_once);
    const BlockView view = buffer.rows(0, at_once);
    auto got = cursor->pull(view, pulling);
    if (!got) got.failure().raise();
    for (std::size_t row = 0; row < *got; ++row)
      pulled.values.push_back(read_row(view, row).leaves().front().item<std::int64_t>());
    if (*got < at_once) break;
  }
  pulled.failures = failures.take();
  return pulled;
}

Dataset fails_at(const Dataset& in, std::int64_t bad) {
  return in.map(
      [bad](std::int64_t x) {
        if (x == bad) throw std::runtime_error("bad luck");
        return x;
      },
      {.name = "luck"});
}

TEST(StepFlowsTest, AFailedRowLeavesTheStream) {
  for (const std::size_t at_once : {1U, 2U, 3U, 50U}) {
    for (const Dataset& in : {generated(5), Dataset::range(5)}) {
      const Pulled kept =
          pull_all(fails_at(in, 2).filter([](std::int64_t) { return true; }), at_once);
      EXPECT_THAT(kept.values, ElementsAre(0, 1, 3, 4));
      ASSERT_EQ(kept.failures.size(), 1U);
      EXPECT_EQ(kept.failures.front().where.sample, (SampleKey{0, 2}));
      EXPECT_THAT(kept.failures.front().where.op, HasSubstr("luck"));
    }
    const Pulled judged = pull_all(generated(6).filter(
                                       [](std::int64_t x) {
                                         if (x == 3) throw std::runtime_error("undecided");
                                         return true;
                                       },
                                       {.name = "judge"}),
                                   at_once);
    EXPECT_THAT(judged.values, ElementsAre(0, 1, 2, 4, 5));
    ASSERT_EQ(judged.failures.size(), 1U);
    EXPECT_THAT(judged.failures.front().where.op, HasSubstr("judge"));
    const Pulled until = pull_all(generated(6).take_while([](std::int64_t x) {
      if (x == 1) throw std::runtime_error("undecided");
      return x < 3;
    }),
                                  at_once);
    EXPECT_THAT(until.values, ElementsAre(0, 2));
    const Pulled opened = pull_all(generated(4).flat_map([](std::int64_t x) {
      if (x == 2) throw std::runtime_error("cannot be opened");
      return Dataset::range(x);
    }),
                                   at_once);
    EXPECT_THAT(opened.values, ElementsAre(0, 0, 1, 2));
    ASSERT_EQ(opened.failures.size(), 1U);
    EXPECT_EQ(opened.failures.front().where.sample, (SampleKey{0, 2}));
    EXPECT_THAT(opened.failures.front().where.op, HasSubstr("flat_map"));
  }
}

TEST(StepFlowsTest, FailuresAfterTheEndOfTheShortestPartOfAZipAreNotReported) {
  for (const std::size_t at_once : {1U, 2U, 3U, 50U}) {
    const Dataset fails = fails_at(generated(6), 4).filter([](std::int64_t) { return true; });
    const Pulled pulled = pull_all(Dataset::zip({Dataset::range(3), fails}), at_once);
    EXPECT_THAT(pulled.values, ElementsAre(0, 1, 2));
    EXPECT_THAT(pulled.failures, IsEmpty());
  }
}

TEST(StepFlowsTest, AGeneratorThatThrowsEndsThePassEvenIfFailuresAreSkipped) {
  EXPECT_THROW(pull_all(generated(5, 3), 2), SampleError);
}

TEST(StepFlowsTest, TheFirstFailedRowIsReportedWithItsSample) {
  const FlowPtr flow = compile_flow(*fails_at(generated(5), 2).filter(kEven).node(), {});
  const CursorPtr cursor = flow->open({0, 0});
  Scratch scratch;
  Pulling pulling{scratch};
  RowBuffer buffer(flow->spec());
  buffer.reserve(5);
  auto got = cursor->pull(buffer.rows(0, 5), pulling);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.failure().where.sample, (SampleKey{0, 2}));
  EXPECT_THAT(got.failure().where.op, HasSubstr("luck"));
}

// Anchors of other datasets

TEST(StepFlowsTest, AnAnchorThatIsTooShortIsAStateError) {
  const std::vector<Dataset> all = {
      generated(9).batch(2),
      generated(9).shuffle({.window = 4}).batch(3),
      generated(9).flat_map([](std::int64_t x) { return Dataset::range(x); }).batch(3),
      Dataset::zip({generated(9), Dataset::range(9).filter(kEven)}).batch(2),
      generated(9).batch(2).unbatch().repeat(2).batch(3).take(4),
  };
  for (const Dataset& dataset : all) {
    SCOPED_TRACE(dataset.describe());
    const Program program = compile(*dataset.node(), {});
    StepPuller puller(program, {0, 0});
    puller.pull();
    const Anchor whole = puller.save();
    for (std::size_t numbers = 0; numbers < whole.numbers.size(); ++numbers) {
      Anchor cut = whole;
      cut.numbers.resize(numbers);
      StepPuller resumed(program, {0, 0});
      EXPECT_THROW(resumed.restore(cut), StateError) << numbers;
    }
  }
}

TEST(StepFlowsTest, AGeneratorThatIsShorterThanItsStateFails) {
  const Program longer = compile(*generated(9).batch(2).node(), {});
  StepPuller puller(longer, {0, 0});
  for (int i = 0; i < 4; ++i) puller.pull();
  const Program shorter = compile(*generated(5).batch(2).node(), {});
  StepPuller resumed(shorter, {0, 0});
  try {
    resumed.restore(puller.save());
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("5 elements"));
    EXPECT_THAT(error.what(), HasSubstr("after 8"));
    EXPECT_THAT(error.what(), HasSubstr("printer"));
  }
}

}  // namespace
}  // namespace penstock
