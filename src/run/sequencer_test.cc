#include "run/sequencer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "run/plan_for_tests.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

using Values = std::vector<std::int64_t>;

/// `first`, `first` + 1, ... as a stream.
Dataset stream(std::int64_t first = 0, std::int64_t batch = 4, std::int64_t bad = -1) {
  return Dataset::range(10)
      .map([first](std::int64_t x) { return first + x; })
      .filter([bad](std::int64_t x) {
        if (x == bad) throw std::runtime_error("bad value");
        return true;
      })
      .batch(batch);
}

struct Pulled {
  Values values;
  Anchor after;
  std::string digest;  // of its first row
};

/// Pulls steps from `from` on; `failures` collects rows that are left out.
std::vector<Pulled> pull_all(const Dataset& dataset, StreamPlace from = {},
                             RowFailures* failures = nullptr) {
  Sequencer sequencer(testing::plan_of(dataset), 0, std::move(from));
  Scratch scratch;
  Pulling pulling{scratch, failures};
  std::vector<Pulled> steps;
  for (;;) {
    PulledStep step;
    Pulled pulled;
    auto more = sequencer.pull(step, pulled.after, pulling);
    if (!more) more.failure().raise();
    if (!*more) return steps;
    const BlockView rows = step.buffer->rows(0, step.rows);
    const auto* const first = reinterpret_cast<const std::int64_t*>(rows.columns[0].data);
    pulled.values.assign(first, first + rows.rows);
    pulled.digest = row_digest(rows, 0);
    steps.push_back(std::move(pulled));
  }
}

std::vector<Values> values_of(const std::vector<Pulled>& steps) {
  std::vector<Values> values;
  for (const Pulled& step : steps) values.push_back(step.values);
  return values;
}

TEST(SequencerTest, StepsComeInOrderUntilTheEnd) {
  EXPECT_THAT(values_of(pull_all(stream())),
              ElementsAre(Values{0, 1, 2, 3}, Values{4, 5, 6, 7}, Values{8, 9}));
}

TEST(SequencerTest, FromTheAnchorOfEachStepTheRestFollows) {
  const auto steps = pull_all(stream());
  auto rest = values_of(steps);
  for (const Pulled& step : steps) {
    rest.erase(rest.begin());
    EXPECT_EQ(values_of(pull_all(stream(), {.anchor = step.after})), rest);
  }
}

TEST(SequencerTest, ARowThatThePlacePromisesIsAccepted) {
  const auto steps = pull_all(stream());
  const StreamPlace from{steps[0].after, 4, steps[1].digest, 4};
  EXPECT_THAT(values_of(pull_all(stream(), from)), ElementsAre(Values{4, 5, 6, 7}, Values{8, 9}));
}

TEST(SequencerTest, AnotherRowThanThePlacePromisesIsAStateError) {
  const auto steps = pull_all(stream());
  const StreamPlace from{steps[0].after, 4, steps[1].digest, 4};
  EXPECT_THAT([&] { pull_all(stream(100), from); },
              ThrowsMessage<StateError>(HasSubstr("returned another element")));
}

TEST(SequencerTest, AStreamThatEndsBeforeThePromisedRowIsAStateError) {
  const auto steps = pull_all(stream());
  const StreamPlace from{steps[2].after, 10, steps[1].digest, 4};
  EXPECT_THAT([&] { pull_all(stream(), from); },
              ThrowsMessage<StateError>(HasSubstr("returned no element")));
}

TEST(SequencerTest, APromiseForAnotherBatchSizeIsNotCompared) {
  const auto steps = pull_all(stream());
  const StreamPlace from{steps[0].after, 4, "of a batch of 5", 5};
  EXPECT_THAT(values_of(pull_all(stream(), from)), ElementsAre(Values{4, 5, 6, 7}, Values{8, 9}));
}

TEST(SequencerTest, RowsThatWereLeftOutBeforeThePlaceAreNotReportedAgain) {
  const Dataset dataset = stream(0, 4, 2);
  RowFailures failures;
  const auto steps = pull_all(dataset, {}, &failures);
  EXPECT_THAT(values_of(steps), ElementsAre(Values{0, 1, 3, 4}, Values{5, 6, 7, 8}, Values{9}));
  EXPECT_EQ(failures.take().size(), 1U);
  pull_all(dataset, {.anchor = steps[0].after}, &failures);
  EXPECT_THAT(failures.take(), IsEmpty());
}

TEST(SequencerTest, TheDigestOfARowDependsOnItsNumberAndItsValues) {
  const auto digest = [](const Dataset& dataset) { return pull_all(dataset)[0].digest; };
  EXPECT_EQ(digest(stream()), digest(stream(0, 5))) << "not on the rows beside it";
  EXPECT_NE(digest(stream()), digest(stream(1))) << "the values differ";
  const auto yes = [](std::int64_t) { return true; };
  const Dataset ones = Dataset::range(4).map([](std::int64_t) { return std::int64_t{1}; });
  EXPECT_NE(digest(ones.filter(yes).batch(1)), digest(ones.skip(1).filter(yes).batch(1)))
      << "the samples differ";
}

}  // namespace
}  // namespace penstock
