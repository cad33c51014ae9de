#include "replica/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

/// A rank that claims another id.
class Claims final : public Coordinator {
 public:
  Claims(Coordinator& base, std::uint32_t rank) : base_(base), rank_(rank) {}
  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t world() const override { return base_.world(); }
  [[nodiscard]] std::vector<std::string> gather(const std::string& word,
                                                const std::string& text) override {
    return base_.gather(word, text);
  }

 private:
  Coordinator& base_;
  std::uint32_t rank_;
};

/// Runs `body(rank, coordinator)` on ranks that are threads; returns the error of each, or "".
template <typename Body>
std::vector<std::string> on_ranks(std::uint32_t world, Body body) {
  LocalGroup group(world);
  std::vector<std::string> errors(world);
  std::vector<Thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    threads.emplace_back("rank", [&, rank, member = group.join(rank).release()] {
      const std::unique_ptr<Coordinator> own(member);
      try {
        body(rank, *own);
      } catch (const ConfigError& error) {
        errors[rank] = error.what();
      }
    });
  for (Thread& thread : threads) thread.join();
  return errors;
}

TEST(AgreementTest, TwoRanksWithOneIdAreNamedOnEveryRank) {
  EXPECT_THAT(on_ranks(4, [](std::uint32_t, Coordinator& own) { compare_ranks(own); }), Each(""));
  const auto errors = on_ranks(4, [](std::uint32_t rank, Coordinator& own) {
    Claims claims(own, rank == 3 ? 1 : rank);
    compare_ranks(claims);
  });
  EXPECT_THAT(errors, Each(HasSubstr("2 processes have rank 1 of 4")));
}

TEST(AgreementTest, ARankOutOfRangeIsReported) {
  const auto errors = on_ranks(3, [](std::uint32_t rank, Coordinator& own) {
    Claims claims(own, rank + 1);
    compare_ranks(claims);
  });
  EXPECT_THAT(errors, Each(HasSubstr("0 processes have rank 0 of 3")));
}

TEST(AgreementTest, DifferingPlansAreReportedWithTheField) {
  const auto differ = [](auto dataset_of) {
    return on_ranks(3, [&](std::uint32_t rank, Coordinator& own) {
      const Plan plan(dataset_of(rank), {.shares = {3, rank, 1}});
      compare_plans(own, plan, Comparing::all);
    });
  };
  const auto range = [](std::int64_t n, std::uint64_t seed, std::int64_t batch) {
    return Dataset::range(n).shuffle({.seed = seed}).batch(batch);
  };
  EXPECT_THAT(differ([&](auto) { return range(100, 7, 16); }), Each(""));
  EXPECT_THAT(differ([&](auto rank) { return range(100, 7, rank == 2 ? 8 : 16); }),
              Each(AllOf(HasSubstr("steps of a pass"), HasSubstr("rank 2 has 13"))));
  EXPECT_THAT(differ([&](auto rank) { return range(rank == 1 ? 99 : 100, 7, 16); }),
              Each(AllOf(HasSubstr("samples of a pass"), HasSubstr("rank 1 has 99"))));
  EXPECT_THAT(differ([&](auto rank) { return range(32, 7, rank == 1 ? 17 : 16); }),
              Each(HasSubstr("global batch")));
  EXPECT_THAT(differ([&](auto rank) { return range(100, rank, 16); }),
              Each(HasSubstr("order of samples")));
  EXPECT_THAT(differ([&](auto rank) {
                return range(100, 7, 16).map(cast(rank == 0 ? Dtype::f32 : Dtype::f64));
              }),
              Each(HasSubstr("values (functions")));
}

TEST(AgreementTest, RanksWithTheirOwnDataMustHaveTheSameLength) {
  const auto errors = on_ranks(2, [](std::uint32_t rank, Coordinator& own) {
    const Plan plan(Dataset::range(100 * rank, 100 * rank + 100).batch(8));
    compare_plans(own, plan, Comparing::geometry);
  });
  EXPECT_THAT(errors, Each(""));
}

}  // namespace
}  // namespace penstock
