#include "feed/own_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "base/launch_table_for_tests.h"
#include "penstock/loader.h"
#include "penstock/sequence.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using Variables = LaunchTable::Variables;

Variables tf_config(const std::string& type, int index) {
  return {{"TF_CONFIG", R"({"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]}, "task": )"
                        R"({"type": ")" +
                            type + R"(", "index": )" + std::to_string(index) + "}}"}};
}

/// The shares of a loader without explicit ones, or the error.
std::string served(const Variables& variables) {
  const LaunchTable table(variables);
  try {
    const Loader loader(Dataset::range(24).batch(6));
    const Shares& shares = loader.plan().shares();
    return std::to_string(shares.first) + " of " + std::to_string(shares.total);
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(OwnSharesTest, ALoaderServesTheShareOfItsProcess) {
  struct Case {
    Variables variables;
    std::string words;
  };
  const std::vector<Case> cases{
      {{}, "0 of 1"},
      {LaunchTable::torchrun(1, 3), "1 of 3"},
      {LaunchTable::torchrun(0, 1), "0 of 1"},
      {tf_config("chief", 0), "0 of 3"},
      {tf_config("worker", 1), "2 of 3"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}}, "2 of 4"},
      {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, "1 of 2"},
      {{{"JOB_COMPLETION_INDEX", "3"}, {"PENSTOCK_WORLD_SIZE", "5"}}, "3 of 5"},
      {{{"RANK", "3"}, {"WORLD_SIZE", "3"}}, "RANK=3 is out of range: WORLD_SIZE=3"},
      {{{"RANK", "0"}}, "RANK=0 is set, WORLD_SIZE is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "4"}},
       "LOCAL_WORLD_SIZE=4 contradicts WORLD_SIZE=2"},
      {{{"JOB_COMPLETION_INDEX", "3"}}, "PENSTOCK_WORLD_SIZE is not"},
  };
  for (const Case& one : cases) EXPECT_THAT(served(one.variables), HasSubstr(one.words));
}

TEST(OwnSharesTest, TheProcessesTogetherHaveEverySampleOnce) {
  std::map<std::uint64_t, int> seen;
  std::vector<std::uint64_t> steps;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const LaunchTable table(LaunchTable::torchrun(rank, 3));
    Loader loader(Dataset::range(103).shuffle({.seed = 7}).batch(16));
    steps.push_back(0);
    while (const auto batch = loader.next()) {
      ++steps.back();
      for (const std::uint64_t id : batch->sample_id()) ++seen[id];
    }
  }
  EXPECT_THAT(steps, ElementsAre(7, 7, 7));
  EXPECT_EQ(seen.size(), 103U);
  EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& one) { return one.second == 1; }));
}

TEST(OwnSharesTest, ThePlanShowsTheSourceOfTheWorld) {
  const auto text = [](const Variables& variables, const LoaderOptions& options = {}) {
    const LaunchTable table(variables);
    return Loader(Dataset::range(24).batch(6), options).plan().explain();
  };
  EXPECT_THAT(text(LaunchTable::torchrun(1, 3)),
              AllOf(HasSubstr("world: 3 processes, this is 1 (torchrun)\n"),
                    HasSubstr("served here: shares 1 to 1 of 3")));
  EXPECT_THAT(text({}), HasSubstr("world: one process\n"));
  // Explicit shares take precedence, and no variable is read.
  const LoaderOptions named{.shares = {{2, 1, 1}}};
  EXPECT_THAT(text({{"RANK", "nonsense"}}, named),
              AllOf(HasSubstr("served here: shares 1 to 1 of 2"), Not(HasSubstr("world:"))));
}

TEST(OwnSharesTest, ASeedThatEachProcessWouldDrawIsRejected) {
  const Dataset drawn = Dataset::range(24).shuffle({.seed = Seed::random()}).batch(6);
  EXPECT_NO_THROW(Loader{drawn});
  const LaunchTable table(LaunchTable::torchrun(1, 3));
  EXPECT_THAT([&] { Loader loader(drawn); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("3 processes"), HasSubstr("seed"))));
}

TEST(OwnSharesTest, APlanIsUsedUnchanged) {
  const Plan plan(Dataset::range(10).batch(8), {.shares = {4, 3, 1}});
  Loader loader(plan);
  EXPECT_EQ(loader.next()->rows(), 2U);
  EXPECT_EQ(loader.next()->rows(), 0U);
  EXPECT_FALSE(loader.next());
  const LoaderOptions beside{.shares = {{2, 0, 1}}};
  EXPECT_THAT([&] { Loader other(plan, beside); },
              ThrowsMessage<ConfigError>(HasSubstr("shares was set together with a plan")));
  EXPECT_THAT([&] { Loader other(plan, {.tail = Tail::drop}); },
              ThrowsMessage<ConfigError>(HasSubstr("tail was set together with a plan")));
}

// Shares without a sample, under a launcher

TEST(OwnSharesTest, AnEmptyShareIsRejectedUnderALauncher) {
  const Dataset ten = Dataset::range(10).batch(8);  // 8, 2
  {
    const LaunchTable table(LaunchTable::torchrun(3, 4));
    EXPECT_THAT([&] { Loader loader(ten); },
                ThrowsMessage<ConfigError>(AllOf(
                    HasSubstr("2 of 4 shares have no sample in a step of 2"), HasSubstr("N = 10"),
                    HasSubstr("G = 8"), HasSubstr("R = 4"), HasSubstr("empty=deliver"))));
    EXPECT_NO_THROW((Loader{ten, {.tail = Tail::even}}));
    Loader delivered(ten, {.empty = Empty::deliver});
    EXPECT_EQ(delivered.next()->rows(), 2U);
    EXPECT_EQ(delivered.next()->rows(), 0U);
  }
  Loader named(ten, {.shares = {{4, 3, 1}}});
  EXPECT_EQ(named.next()->rows(), 2U);
  EXPECT_EQ(named.next()->rows(), 0U);
  const LoaderOptions careful{.shares = {{4, 3, 1}}, .empty = Empty::refuse};
  EXPECT_THROW((Loader{ten, careful}), ConfigError);
}

TEST(OwnSharesTest, AStateThatWouldLeaveAnEmptyShareIsRejected) {
  Loader before(Dataset::range(20).batch(7), {.shares = {{4, 0, 1}}});  // 7, 7, 6
  before.next();
  const State state = before.state();
  const LaunchTable table(LaunchTable::torchrun(0, 4));
  Loader after(Dataset::range(20).batch(10));  // after 7: 10, 3
  EXPECT_THAT([&] { after.restore(state); },
              ThrowsMessage<StateError>(HasSubstr("1 of 4 shares have no sample in a step of 3")));
  Loader fits(Dataset::range(20).batch(20));  // after 7: 13
  EXPECT_NO_THROW(fits.restore(state));
}

TEST(OwnSharesTest, AShareWhoseRowsAreAllSkippedKeepsOneOfWeightZero) {
  const Dataset risky = Dataset::range(12)
                            .map([](std::int64_t x) {
                              if (x == 4 || x == 5 || x == 6) throw std::runtime_error("broken");
                              return x;
                            })
                            .batch(6);  // shares 0 1, 2 3, 4 5 and 6 7, 8 9, 10 11
  const auto rows = [&](std::uint32_t rank, std::optional<Empty> empty) {
    const LaunchTable table(LaunchTable::torchrun(rank, 3));
    Loader loader(risky, {.empty = empty, .on_error = OnError::skip});
    return std::vector<Batch>{*loader.next(), *loader.next()};
  };
  const auto masked = rows(2, std::nullopt);
  EXPECT_EQ(masked[0].rows(), 1U);
  EXPECT_EQ(masked[0].valid_count(), 0U);
  EXPECT_EQ(masked[0].weight()[0], 0);
  EXPECT_EQ(masked[0].values<std::int64_t>()[0], 0);
  EXPECT_EQ(masked[1].rows(), 2U);
  EXPECT_EQ(rows(2, Empty::deliver)[0].rows(), 0U);
  EXPECT_EQ(rows(0, std::nullopt)[1].rows(), 1U);  // 7 remains, and no mask is needed
  EXPECT_EQ(rows(0, std::nullopt)[1].valid_count(), 1U);
}

class Shrinking final : public Sequence {
 public:
  [[nodiscard]] std::uint64_t size() const override { return 3; }
  Sample get(std::uint64_t index) override {
    return Tensor::of(std::vector<std::int64_t>(4 - 2 * (index / 2), 7));  // 4, 4, 2 rows
  }
};

TEST(OwnSharesTest, ABatchOfASequenceThatIsTooSmallFailsWhenItArrives) {
  const Dataset batches = Dataset::from_sequence(std::make_shared<Shrinking>(), {.check = false});
  const LaunchTable table(LaunchTable::torchrun(2, 3));
  Loader loader(batches);
  EXPECT_TRUE(loader.next());
  EXPECT_TRUE(loader.next());
  EXPECT_THAT([&] { (void)loader.next(); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("get(2) returned 2 rows for 3 processes"),
                                               HasSubstr("empty=deliver"))));
  Loader delivered(batches, {.empty = Empty::deliver});
  delivered.next();
  delivered.next();
  EXPECT_EQ(delivered.next()->rows(), 0U);
}

}  // namespace
}  // namespace penstock
