// Memory: which bytes the budget counts, and how a sample that runs out of memory is handled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/fault.h"
#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"
#include "run/budget.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kText = 1 << 20;

Dataset texts(std::int64_t samples) {
  return Dataset::range(samples).map(
      [](const Sample&) { return Sample(Tensor::bytes(std::string(kText, 'x'))); });
}

TEST(BudgetOfTextsTest, TheWindowFollowsTheBytesOfTheTexts) {
  Loader loader(texts(30).batch(1).prefetch({.steps = 20}),
                {.threads = 1, .lookahead_bytes = 3 * kText + kText / 2});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(loader.next().has_value());
  ASSERT_FALSE(loader.decisions().empty());
  EXPECT_THAT(loader.decisions().back(), HasSubstr("3 steps ahead"));
}

TEST(BudgetOfTextsTest, TheBudgetCountsWaitingTextsAndGetsThemBack) {
  const std::uint64_t before = ByteBudget::process().used();
  {
    std::atomic<std::uint64_t> most{0};
    Loader loader(Dataset::range(8)
                      .map([&](const Sample&) {
                        const std::uint64_t used = ByteBudget::process().used() - before;
                        if (used > most) most = used;
                        return Sample(Tensor::bytes(std::string(kText, 'x')));
                      })
                      .batch(1)
                      .prefetch({.steps = 8}),
                  {.threads = 1});
    while (loader.next()) {
    }
    // One thread computes a step while the one before it is complete, or was delivered.
    EXPECT_GE(most, kText);
  }
  EXPECT_EQ(ByteBudget::process().used(), before);
}

/// Batches of 3 and of 5 rows.
class Uneven final : public Sequence {
 public:
  [[nodiscard]] std::uint64_t size() const override { return 20; }
  Sample get(std::uint64_t index) override {
    return Tensor::of(std::vector<std::int64_t>(index % 2 == 0 ? 3 : 5));
  }
};

TEST(BudgetTest, TheBudgetIsExactIfABatchCannotBeAllocated) {
  const std::uint64_t before = ByteBudget::process().used();
  const std::vector<Dataset> datasets{
      Dataset::range(100).batch(5), Dataset::from_sequence(std::make_shared<Uneven>()),
      Dataset::range(100).filter([](std::int64_t) { return true; }).batch(5)};
  for (const Dataset& dataset : datasets) {
    for (const unsigned threads : {0U, 2U}) {
      std::vector<Batch> batches;  // so that no slab is reused
      Loader loader(dataset, {.threads = threads});
      fault::arm("slab.allocate", 3);
      EXPECT_THROW(
          {
            while (auto batch = loader.next()) batches.push_back(*batch);
          },
          Error);
      fault::disarm_all();
      loader.stop();
    }
  }
  EXPECT_EQ(ByteBudget::process().used(), before);
}

/// Sample 5 always needs more memory than there is, sample 2 once.
struct Scarce {
  std::atomic<int> calls_of_2{0};
  std::atomic<int> calls_of_5{0};
  void look_at(std::int64_t x) {
    if (x == 5) {
      ++calls_of_5;
      throw std::bad_alloc();
    }
    if (x == 2 && ++calls_of_2 == 1) throw std::bad_alloc();
  }
};

TEST(NoMemoryTest, ALackOfMemoryIsRetriedAndThenSkipsTheSample) {
  for (const unsigned threads : {0U, 2U}) {
    Scarce scarce;
    Loader loader(Dataset::range(8)
                      .map([&](std::int64_t x) {
                        scarce.look_at(x);
                        return x;
                      })
                      .batch(8),
                  {.threads = threads, .on_error = OnError::skip});
    const auto batch = loader.next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->rows(), 7U);
    EXPECT_EQ(scarce.calls_of_2, 2);
    EXPECT_EQ(scarce.calls_of_5, 4);
    ASSERT_EQ(loader.ledger().count(), 1U);
    EXPECT_EQ(loader.ledger().entries().front().sample.number, 5U);
    EXPECT_THAT(loader.ledger().entries().front().reason, HasSubstr("memory"));
  }
}

TEST(NoMemoryTest, ALackOfMemoryNamesTheSample) {
  Scarce scarce;
  Loader loader(Dataset::range(8)
                    .map([&](std::int64_t x) {
                      scarce.look_at(x);
                      return x;
                    })
                    .batch(8));
  try {
    (void)loader.next();
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_EQ(error.where().sample->number, 5U);
    EXPECT_THAT(error.what(), HasSubstr("memory"));
  }
}

/// For several rows as for one: the sample is found by trying one after the other.
TEST(NoMemoryTest, ALackOfMemoryInABlockFailsOneSample) {
  const auto block_fn = [](const Block& in, Block& out) {
    const auto x = in.column<std::int64_t>();
    const auto y = out.column<std::int64_t>();
    for (std::size_t row = 0; row < in.rows(); ++row) {
      if (x[row] == 5) throw std::bad_alloc();
      y[row] = x[row];
    }
  };
  for (const OnError policy : {OnError::skip, OnError::raise}) {
    Loader loader(
        Dataset::range(8).map(block_fn, {.spec = ElementSpec::single(Dtype::i64)}).batch(8),
        {.on_error = policy});
    if (policy == OnError::skip) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch.has_value());
      EXPECT_EQ(batch->rows(), 7U);
      continue;
    }
    try {
      (void)loader.next();
      FAIL();
    } catch (const SampleError& error) {
      EXPECT_EQ(error.where().sample->number, 5U);
    }
  }
}

TEST(NoMemoryTest, ALackOfMemoryReportsTheSizeOfTheFile) {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < 3; ++i)
    paths.push_back(folder.write(std::to_string(i) + ".bin", std::string(100 + i, 'x')));
  Loader loader(Dataset::from_paths(paths)
                    .map([](const Sample& sample) -> Sample {
                      if (sample["image"].text().size() == 101) throw std::bad_alloc();
                      return sample;
                    })
                    .batch(3),
                {.on_error = OnError::skip});
  const auto batch = loader.next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->rows(), 2U);
  ASSERT_EQ(loader.ledger().count(), 1U);
  EXPECT_THAT(loader.ledger().entries().front().reason, HasSubstr("its file has 101 bytes"));
  EXPECT_EQ(loader.ledger().entries().front().file, paths[1]);
}

}  // namespace
}  // namespace penstock
