#include "run/compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "plan/failures.h"
#include "run/plan_for_tests.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<std::int64_t>;

std::int64_t tenfold(std::int64_t x) {
  return 10 * x;
}

std::int64_t not_five(std::int64_t x) {
  if (x == 5) throw std::runtime_error("bad value");
  return x;
}

/// `map` of whole batches; it adds the number of rows that it sees to each.
Dataset whole(const Dataset& batches) {
  return batches.map(
      [](const Sample& batch) {
        const auto in = batch.leaves()[0].values<std::int64_t>();
        Values out;
        for (const std::int64_t x : in)
          out.push_back(x + 100 * static_cast<std::int64_t>(in.size()));
        return Sample(Tensor::of(out));
      },
      {.spec = ElementSpec::single(Dtype::i64)});
}

class ComputeTest : public ::testing::Test {
 protected:
  /// Memory for rows of one number each.
  class Rows {
   public:
    Rows(std::size_t rows, Scratch& scratch, RowFailures* failures = nullptr)
        : flags_(rows), numbers_(rows), occurrences_(rows) {
      Identity identity{numbers_.data(), occurrences_.data()};
      if (failures != nullptr) {
        identity.failed = flags_.data();
        identity.failures = failures;
      }
      block_.emplace(spec_, rows, scratch, identity);
    }
    [[nodiscard]] const BlockView& view() const { return block_->view(); }
    [[nodiscard]] Values values() const {
      const auto* const first = reinterpret_cast<const std::int64_t*>(view().columns[0].data);
      return {first, first + view().rows};
    }
    [[nodiscard]] const std::vector<std::uint64_t>& numbers() const { return numbers_; }
    [[nodiscard]] const std::vector<std::uint8_t>& flags() const { return flags_; }

   private:
    const ElementSpec spec_ = ElementSpec::single(Dtype::i64);
    std::vector<std::uint8_t> flags_;
    std::vector<std::uint64_t> numbers_;
    std::vector<std::uint64_t> occurrences_;
    std::optional<ScratchBlock> block_;
  };

  Result<void> rows(const Dataset& dataset, const Place& place, std::uint64_t first,
                    const Rows& out) {
    const auto plan = testing::plan_of(dataset);
    return compute_rows(plan->program, place, first, out.view(), scratch_);
  }
  Result<void> step(const Dataset& dataset, const Place& place,
                    const std::vector<Destination>& destinations) {
    const auto plan = testing::plan_of(dataset);
    return compute_step(plan->program, place, destinations, scratch_);
  }

  Scratch scratch_;
};

TEST_F(ComputeTest, RowsOfAStepAreThoseAtTheirPositions) {
  const Rows out(2, scratch_);
  ASSERT_TRUE(rows(Dataset::range(20).map(tenfold).batch(4), testing::rows_at(8, 4), 1, out));
  EXPECT_THAT(out.values(), ElementsAre(90, 100));
  EXPECT_THAT(out.numbers(), ElementsAre(9, 10));
}

TEST_F(ComputeTest, AFailureHasTheRowAmongThoseAskedFor) {
  const Rows out(3, scratch_);
  const auto done = rows(Dataset::range(20).map(not_five).batch(4), testing::rows_at(4, 4), 0, out);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 1U);
  EXPECT_THAT(done.failure().message, HasSubstr("bad value"));
}

TEST_F(ComputeTest, RowsComputedTogetherAreThoseComputedAlone) {
  const auto plan = testing::plan_of(Dataset::range(20).map(tenfold).batch(5));
  const Rows two(2, scratch_);
  const Rows three(3, scratch_);
  const std::vector<BlockView> outs{two.view(), three.view()};
  ASSERT_TRUE(compute_together(plan->program, testing::rows_at(5, 5), outs, scratch_));
  EXPECT_THAT(two.values(), ElementsAre(50, 60));
  EXPECT_THAT(three.values(), ElementsAre(70, 80, 90));
  EXPECT_THAT(three.numbers(), ElementsAre(7, 8, 9));
}

TEST_F(ComputeTest, OnlyAFunctionOfBatchesMakesAStepWhole) {
  const Place place = testing::rows_at(0, 4);
  EXPECT_FALSE(is_whole(testing::plan_of(Dataset::range(8).map(tenfold).batch(4))->program, place));
  EXPECT_TRUE(is_whole(testing::plan_of(whole(Dataset::range(8).batch(4)))->program, place));
}

TEST_F(ComputeTest, AWholeStepIsSeenOnceAndThenCutForItsDestinations) {
  const Rows first(1, scratch_);
  const Rows last(2, scratch_);
  ASSERT_TRUE(step(whole(Dataset::range(20).batch(4)), testing::rows_at(4, 4),
                   {{0, &first.view()}, {2, &last.view()}}));
  EXPECT_THAT(first.values(), ElementsAre(404));
  EXPECT_THAT(last.values(), ElementsAre(406, 407));
  EXPECT_THAT(last.numbers(), ElementsAre(6, 7));
}

TEST_F(ComputeTest, AFunctionOfBatchesDoesNotSeeRowsThatAreLeftOut) {
  RowFailures failures;
  const Rows first(2, scratch_, &failures);
  const Rows last(2, scratch_, &failures);
  ASSERT_TRUE(step(whole(Dataset::range(20).map(not_five).batch(4)), testing::rows_at(4, 4),
                   {{0, &first.view()}, {2, &last.view()}}));
  EXPECT_EQ(first.values()[0], 304) << "three rows were seen";
  EXPECT_THAT(last.values(), ElementsAre(306, 307));
  EXPECT_THAT(first.flags(), ElementsAre(kRowGood, kRowFailed));
  EXPECT_THAT(last.flags(), Each(kRowGood));
  const auto told = failures.take_rows(first.flags().data());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].row, 1U) << "of its destination";
}

TEST_F(ComputeTest, AFunctionOfBatchesIsNotCalledWithoutRows) {
  RowFailures failures;
  const Rows only(1, scratch_, &failures);
  const auto never = [](const Sample&) -> Sample { throw std::runtime_error("called"); };
  const Dataset dataset = Dataset::range(20).map(not_five).batch(1).map(
      never, {.spec = ElementSpec::single(Dtype::i64)});
  ASSERT_TRUE(step(dataset, testing::rows_at(5, 1), {{0, &only.view()}}));
  EXPECT_THAT(only.flags(), ElementsAre(kRowFailed));
  EXPECT_FALSE(step(dataset, testing::rows_at(6, 1), {{0, &only.view()}})) << "with a row it is";
}

TEST_F(ComputeTest, AFunctionOfBatchesThatLosesARowIsAFailureThatNamesIt) {
  const auto shorten = [](const Sample& batch) {
    const auto in = batch.leaves()[0].values<std::int64_t>();
    return Sample(Tensor::of(Values(in.begin() + 1, in.end())));
  };
  const Rows out(4, scratch_);
  const auto done = step(Dataset::range(8).batch(4).map(
                             shorten, {.name = "shorten", .spec = ElementSpec::single(Dtype::i64)}),
                         testing::rows_at(0, 4), {{0, &out.view()}});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.failure().where.op, HasSubstr("shorten"));
}

}  // namespace
}  // namespace penstock
