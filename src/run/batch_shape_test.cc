#include "run/batch_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "graph/node.h"
#include "op/op.h"
#include "penstock/error.h"
#include "run/plan_for_tests.h"
#include "sample/rows.h"
#include "verb/map.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::plan_of;
using testing::rows_at;
using ::testing::ThrowsMessage;

/// {"id": x}, by a function whose spec is unknown before it runs; fails for x below `bad`.
Dataset undeclared(std::int64_t samples, std::int64_t bad = 0) {
  return Dataset::range(samples).map([bad](const Sample& sample) {
    if (sample.tensor().values<std::int64_t>()[0] < bad) throw std::runtime_error("bad value");
    return Sample::dict({{"id", sample.tensor()}});
  });
}

class Learning {
 public:
  explicit Learning(const Dataset& dataset, bool skips = false, Shares shares = {})
      : plan(plan_of(dataset, shares)),
        learner(plan, {"train", 0, skips, {4, shares.count, nullptr}}),
        step({.shares = shares, .skips = skips}) {}

  BatchShape learn() { return learner.learn(plan->geometry, 0, plan->geometry.steps(), scratch); }
  /// Opens step `number` and writes its learned rows; returns them.
  std::uint64_t write(const BatchShape& shape, std::uint64_t number) {
    step.open(number, plan->geometry.step(0, number));
    step.cut({}, shape.layout, *shape.ring);
    return learner.write_rows(step);
  }

  std::shared_ptr<const PlanData> plan;
  ShapeLearner learner;
  StepInFlight step;
  Scratch scratch;
};

TEST(BatchShapeTest, TheRingHoldsBatchesOfAllShares) {
  const BatchShape shape = make_batch_shape(ElementSpec::single(Dtype::i64), {16, 2, nullptr});
  EXPECT_EQ(shape.layout->rows_max, 16U);
  EXPECT_NE(shape.ring->acquire(shape.layout, {}), nullptr);
}

TEST(ShapeLearnerTest, ADeclaredSpecIsTakenWithoutComputingARow) {
  std::atomic<int> calls{0};
  Learning learning(Dataset::range(8)
                        .map([&calls](std::int64_t x) {
                          ++calls;
                          return x;
                        })
                        .batch(4));
  EXPECT_EQ(learning.learn().layout->spec, ElementSpec::single(Dtype::i64));
  EXPECT_EQ(calls, 0);
}

TEST(ShapeLearnerTest, TheFirstSampleShowsTheFieldsAndIsWrittenIntoItsStep) {
  Learning learning(undeclared(8).batch(4));
  const BatchShape shape = learning.learn();
  ASSERT_EQ(shape.layout->spec.fields.size(), 1U);
  EXPECT_EQ(shape.layout->spec.fields[0].path, "id");
  EXPECT_EQ(learning.write(shape, 1), 0U) << "no row of it was computed";
  EXPECT_EQ(learning.write(shape, 0), 1U);
  const BlockView rows = learning.step.rows_of(0);
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(rows.columns[0].data)[0], 0);
  EXPECT_EQ(rows.identity.sample_id[0], 0U);
}

TEST(ShapeLearnerTest, AFailureIsThrownWithItsPlaceUnlessFailuresAreSkipped) {
  Learning learning(undeclared(8, 1).batch(4));
  try {
    learning.learn();
    FAIL() << "nothing was raised";
  } catch (const SampleError& error) {
    EXPECT_EQ(error.where().dataset, "train");
    EXPECT_EQ(error.where().step, 0U);
  }
}

TEST(ShapeLearnerTest, SkippedRowsAreFailuresOfTheirStepAndNotComputedAgain) {
  Learning learning(undeclared(8, 6).batch(4), true);
  const BatchShape shape = learning.learn();
  EXPECT_EQ(shape.layout->spec.fields.size(), 1U);
  EXPECT_EQ(learning.write(shape, 0), 4U);
  EXPECT_EQ(learning.step.failures.take().size(), 4U);
  EXPECT_EQ(learning.step.rows_of(0).identity.failed[3], kRowFailed);
  EXPECT_EQ(learning.write(shape, 1), 3U);
  EXPECT_EQ(learning.step.failures.take().size(), 2U);
  EXPECT_EQ(learning.step.rows_of(0).identity.failed[2], kRowGood);
}

TEST(ShapeLearnerTest, AShareWithoutSamplesLearnsFromAnother) {
  Learning learning(undeclared(1).batch(1), false, Shares{2, 1, 1});
  EXPECT_EQ(learning.learn().layout->spec.fields.size(), 1U);
}

TEST(ShapeLearnerTest, AResumedPassWhoseRemainingRowsAreMaskedLearnsFromTheStepsBefore) {
  const Dataset masked = Dataset::range(12)
                             .filter([](std::int64_t x) { return x < 6; }, {.mask = true})
                             .map([](const Sample& x) { return Sample::dict({{"id", x}}); });
  Learning learning(masked.batch(4));
  const Geometry& geometry = learning.plan->geometry;
  const BatchShape shape = learning.learner.learn(geometry, 2, geometry.steps(), learning.scratch);
  ASSERT_EQ(shape.layout->spec.fields.size(), 1U);
  EXPECT_EQ(shape.layout->spec.fields[0].path, "id");
}

TEST(ShapeLearnerTest, BatchesHaveNoFieldsIfNoSampleCanBeComputed) {
  Learning learning(undeclared(8, 8).batch(4), true);
  EXPECT_TRUE(learning.learn().layout->spec.fields.empty());
  EXPECT_TRUE(learning.learner.without_fields().layout->spec.fields.empty());
}

TEST(ShapeLearnerTest, EndlessDataThatNeverShowsItsFieldsIsAnError) {
  Learning failing(undeclared(8, 8).repeat().batch(4), true);
  EXPECT_THAT([&] { failing.learn(); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("none of the first 100000 samples"),
                                               HasSubstr("bad value"), HasSubstr("spec="))));
  Learning masked(undeclared(8)
                      .filter([](const Sample&) { return false; }, {.mask = true})
                      .map([](const Sample& x) { return x; })
                      .repeat()
                      .batch(4));
  EXPECT_THAT([&] { masked.learn(); }, ThrowsMessage<SampleError>(HasSubstr("they are masked")));
}

/// Returns the rows of a batch unchanged; its spec is unknown before running.
class ListOp final : public Op {
 public:
  [[nodiscard]] std::string word() const override { return "map"; }
  [[nodiscard]] std::string describe() const override { return "map list"; }
  [[nodiscard]] bool row_wise() const override { return false; }
  [[nodiscard]] bool takes_lists() const override { return true; }
  [[nodiscard]] ElementSpec output(const ElementSpec&) const override {
    return ElementSpec::unknown();
  }
  Result<void> run(const BlockView& in, const BlockView& out, const OpContext&) const override {
    ++calls;
    for (std::size_t row = 0; row < in.rows; ++row)
      if (const auto wrong = write_row(out, row, read_row(in, row)))
        return Failure{*wrong, {}, {}, nullptr, row};
    return {};
  }
  mutable std::atomic<int> calls{0};
};

TEST(ShapeLearnerTest, AWholeStepIsComputedOnceAndWrittenOnce) {
  const auto op = std::make_shared<ListOp>();
  const std::atomic<int>& calls = op->calls;
  Learning learning(add_map(Dataset::range(8).batch(4), op, 0));
  const BatchShape shape = learning.learn();
  EXPECT_EQ(calls, 1);
  learning.step.open(0, learning.plan->geometry.step(0, 0));
  learning.step.cut({.whole = true}, shape.layout, *shape.ring);
  EXPECT_TRUE(learning.learner.write_step(learning.step));
  const BlockView rows = learning.step.rows_of(0);
  EXPECT_EQ(reinterpret_cast<const std::int64_t*>(rows.columns[0].data)[3], 3);
  learning.step.open(1, learning.plan->geometry.step(0, 1));
  learning.step.cut({.whole = true}, shape.layout, *shape.ring);
  EXPECT_FALSE(learning.learner.write_step(learning.step)) << "it was not computed";
  EXPECT_EQ(calls, 1);
}

class CountingSequence final : public Sequence {
 public:
  [[nodiscard]] std::uint64_t size() const override { return 3; }
  Sample get(std::uint64_t index) override {
    ++calls;
    return Sample::dict({{"x", Tensor::of(std::vector<float>(2, static_cast<float>(index)))}});
  }
  std::atomic<int> calls{0};
};

TEST(ShapeLearnerTest, ABatchOfASequenceIsRequestedOnceAndPassedToItsStep) {
  const auto sequence = std::make_shared<CountingSequence>();
  Learning learning(Dataset::from_sequence(sequence));
  const int before = sequence->calls;
  EXPECT_EQ(learning.learn().layout->spec.fields.size(), 1U);
  EXPECT_EQ(sequence->calls, before + 1);
  const auto batch = learning.learner.take_batch(0);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->view.rows, 2U);
  EXPECT_FALSE(learning.learner.take_batch(0));
  EXPECT_FALSE(learning.learner.take_batch(1));
}

TEST(ShapeLearnerTest, AStepOfAStreamShowsTheFields) {
  Learning learning(undeclared(4).batch(4));
  StepInFlight step({});
  PulledRows& pulled = step.open_pulled(0, 0);
  const BatchShape numbers = testing::shape_of_numbers(4);
  const auto batch = numbers.ring->acquire(numbers.layout, {0, 0, 0, 1, 4, 4});
  testing::write_numbers(batch->rows(), 0);
  pulled.rows = batch->rows();
  step.set_place(rows_at(0, 4));
  const auto shape = learning.learner.learn_from_stream(step, learning.scratch);
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->layout->spec.fields[0].path, "id");
}

}  // namespace
}  // namespace penstock
