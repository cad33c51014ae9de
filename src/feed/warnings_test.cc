// Likely mistakes are reported once, with a remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/launch_table_for_tests.h"
#include "penstock/loader.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Collects reports during its lifetime.
class Reports {
 public:
  Reports() {
    before_ = set_report_sink([this](const std::string& text) { texts.push_back(text); });
  }
  ~Reports() { set_report_sink(before_); }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;
  std::vector<std::string> texts;

 private:
  ReportSink before_;
};

Dataset numbers() {
  return Dataset::range(20).batch(2);
}

TEST(WarningsTest, TheThirdIteratorInARowWithOneBatchIsReported) {
  const Reports reports;
  const Loader loader(numbers(), {.threads = 0});
  for (int i = 0; i < 5; ++i) (void)loader.iterate().next();
  EXPECT_THAT(reports.texts, ElementsAre(AllOf(HasSubstr("three iterators in a row"),
                                               HasSubstr("keep one iterator"))));
}

TEST(WarningsTest, RankZeroReportsOnceThatALoaderServesOnlyItsShare) {
  const auto said = [](const LaunchTable::Variables& variables, const LoaderOptions& options,
                       const Dataset& dataset = numbers()) {
    const LaunchTable table(variables);
    const Reports reports;
    Loader loader(dataset, options);
    EXPECT_THAT(reports.texts, IsEmpty()) << "before an epoch starts";
    Iterator iterator = loader.iterate();
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (loader.next()) {
      }
      while (iterator.next()) {
      }
    }
    return reports.texts;
  };
  const LoaderOptions found{.threads = 0};
  EXPECT_THAT(said(LaunchTable::torchrun(0, 2), found),
              ElementsAre(AllOf(HasSubstr("rank 0 of 2 (torchrun)"),
                                HasSubstr("about 10 of the 20 samples"), HasSubstr("world=1"))));
  EXPECT_THAT(said(LaunchTable::torchrun(1, 2), found), IsEmpty());
  EXPECT_THAT(said(LaunchTable::torchrun(0, 1), found), IsEmpty());
  const LoaderOptions named{.shares = {{2, 0, 1}}, .threads = 0};
  EXPECT_THAT(said(LaunchTable::torchrun(0, 2), named), IsEmpty());
  const LoaderOptions group{
      .shares = {{2, 0, 1}}, .shares_from = "torch.distributed", .threads = 0};
  EXPECT_THAT(said({}, group), ElementsAre(HasSubstr("rank 0 of 2 (torch.distributed)")));
  const Dataset stream =
      numbers().unbatch().filter([](const Sample&) { return true; }).batch(4, {.tail = Tail::pad});
  EXPECT_THAT(said(LaunchTable::torchrun(0, 2), found, stream),
              ElementsAre(HasSubstr("share 0 of 2 of each batch")));
}

TEST(WarningsTest, IteratorsThatContinueAreNotReported) {
  const Reports reports;
  const Loader loader(numbers(), {.threads = 0});
  for (int i = 0; i < 6; ++i) {
    Iterator iterator = loader.iterate();
    (void)iterator.next();
    if (i % 3 == 2) (void)iterator.next();
  }
  EXPECT_THAT(reports.texts, IsEmpty());
}

TEST(WarningsTest, LoopsThatEndAfterTheirFirstBatchAreReported) {
  const Reports reports;
  Loader loader(numbers(), {.threads = 0});
  for (int i = 0; i < 5; ++i) {
    for (const Batch& batch : loader) {
      (void)batch;
      break;
    }
  }
  EXPECT_EQ(reports.texts.size(), 1U);
}

TEST(WarningsTest, ARandomOpBeforeACacheIsReportedAndShownInThePlan) {
  const auto noise = [](std::int64_t x, Rng& rng) {
    return x + static_cast<std::int64_t>(rng.integer(3));
  };
  const Reports reports;
  const Loader frozen(Dataset::range(9).map(noise, {.name = "noise"}).cache().batch(3));
  EXPECT_THAT(reports.texts,
              ElementsAre(AllOf(HasSubstr("noise"), HasSubstr("put cache() before it"))));
  EXPECT_THAT(frozen.plan().explain(), HasSubstr("warning: cache"));
  const Loader fresh(Dataset::range(9).cache().map(noise, {.name = "noise"}).batch(3));
  EXPECT_EQ(reports.texts.size(), 1U);
}

Dataset of_batches(bool declared) {
  const ElementSpec spec = ElementSpec::dict({{"x", Dtype::f32, {32, 4}}, {"y", Dtype::i64, {32}}});
  SourceOptions options;
  if (declared) options.spec = spec;
  return Dataset::from_generator(
      [] {
        return [i = 0]() mutable -> std::optional<Sample> {
          if (i++ == 3) return std::nullopt;
          return Sample::dict(
              {{"x", Tensor::of(std::span<const float>(std::vector<float>(128)), {32, 4})},
               {"y", Tensor::of(std::vector<std::int64_t>(32))}});
        };
      },
      options);
}

TEST(WarningsTest, AGeneratorOfBatchesThatIsBatchedAgainIsReported) {
  for (const bool declared : {true, false}) {
    const Reports reports;
    Loader again(of_batches(declared).batch(2), {.threads = 0});
    EXPECT_EQ(again.next()->rows(), 2U);
    EXPECT_THAT(reports.texts, ElementsAre(AllOf(HasSubstr("looks like a batch of 32 rows"),
                                                 HasSubstr("unbatch()"))));
    Loader rows(of_batches(declared).unbatch().batch(50), {.threads = 0});
    EXPECT_EQ(rows.next()->rows(), 50U);
    EXPECT_EQ(rows.next()->rows(), 46U);
    EXPECT_EQ(reports.texts.size(), 1U);
  }
}

}  // namespace
}  // namespace penstock
