#include "plan/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fault.h"
#include "order/chosen.h"
#include "penstock/dataset.h"
#include "penstock/sequence.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Tail kTails[] = {Tail::short_, Tail::even, Tail::pad, Tail::drop, Tail::wrap};

PlanOptions over(std::uint32_t shares, Tail tail = Tail::short_) {
  return {.shares = {shares, 0, 1}, .tail = tail};
}

/// "", or the error.
std::string wrong(const PassCheck& check) {
  return check.wrong ? check.wrong->what : "";
}

TEST(CheckTest, EverySampleIsDeliveredOnceForAllSizes) {
  for (std::uint64_t samples = 0; samples <= 20; ++samples)
    for (std::uint64_t batch = 1; batch <= 9; ++batch)
      for (std::uint32_t shares = 1; shares <= 5; ++shares)
        for (const Tail tail : kTails) {
          const Plan plan(Dataset::range(static_cast<std::int64_t>(samples)).shuffle().batch(batch),
                          over(shares, tail));
          for (std::uint64_t pass = 0; pass < 2; ++pass) {
            const PassCheck check = plan.check(pass);
            ASSERT_EQ(wrong(check), "") << samples << " " << batch << " " << shares;
            EXPECT_EQ(check.steps, plan.steps().count());
            EXPECT_EQ(check.samples, plan.samples()->count());
            EXPECT_EQ(check.dropped, plan.tail_cost().dropped);
            EXPECT_EQ(check.repeated, plan.tail_cost().repeated);
            EXPECT_EQ(check.dropped_first.size(), check.dropped);
          }
        }
}

TEST(CheckTest, DroppedSamplesAreNamed) {
  const PassCheck check = Plan(Dataset::range(10).batch(4), over(3, Tail::drop)).check();
  EXPECT_THAT(check.dropped_first, ElementsAre(SampleKey{0, 8}, SampleKey{0, 9}));
  const PassCheck many = Plan(Dataset::range(99).batch(50), over(3, Tail::drop)).check();
  EXPECT_EQ(many.dropped, 49U);
  EXPECT_EQ(many.dropped_first.size(), PassCheck::kNamedMax);
}

TEST(CheckTest, SamplesOfTheSecondSourceHaveItsName) {
  const Dataset both = Dataset::range(3).concatenate(Dataset::range(3));
  const PassCheck check = Plan(both.batch(4), over(1, Tail::drop)).check();
  EXPECT_THAT(check.dropped_first, ElementsAre(SampleKey{1, 1}, SampleKey{1, 2}));
  const Dataset steps = Dataset::range(3).batch(3).concatenate(Dataset::range(3).batch(2));
  EXPECT_THAT(Plan(steps, over(1, Tail::drop)).check().dropped_first, ElementsAre(SampleKey{1, 2}));
}

TEST(CheckTest, AnyIndexedDatasetCanBeChecked) {
  const Dataset data = Dataset::range(23).shuffle({.seed = 3});
  const std::vector<Dataset> all = {
      data.repeat(3).batch(5),
      data.batch(5).repeat(3),
      data.batch(5).repeat(2).shuffle({.seed = 1}),
      data.batch(4).take(3),
      data.batch(4).skip(2).repeat(2),
      data.batch(4).shard(3, 1),
      data.take(11).batch(4),
      data.skip(4).batch(4),
      data.shard(3, 1).batch(4),
      data.repeat().take(50).batch(7),
      data.repeat(0).concatenate(Dataset::range(4)).batch(3),
      data.repeat(2).concatenate(Dataset::range(9)).batch(5),
      data.batch(5).concatenate(Dataset::range(9).batch(4)),
      Dataset::zip({data, Dataset::range(10)}).batch(3),
      data.enumerate().batch(3),
      data.cache().repeat(2).batch(3),
      data.shuffle({.window = 4}).batch(3),
      data.batch(4, {.drop_remainder = true}).unbatch().batch(3),
      data.batch(4, {.tail = Tail::wrap}).unbatch().batch(3),
      data.batch(4).unbatch().batch(3),
      data.map([](std::int64_t x) { return x + 1; }).batch(4),
  };
  for (const Dataset& dataset : all)
    for (const Tail tail : kTails) {
      const Plan plan(dataset, over(3, tail));
      const PassCheck check = plan.check(1);
      EXPECT_EQ(wrong(check), "") << plan.explain();
      EXPECT_EQ(check.steps, plan.steps().count());
    }
}

TEST(CheckTest, RepeatedBatchesDropInEveryRound) {
  const PassCheck check = Plan(Dataset::range(10).batch(4).repeat(3), over(2, Tail::drop)).check();
  EXPECT_EQ(check.samples, 24U);
  EXPECT_EQ(check.dropped, 6U);
}

TEST(CheckTest, AWrapOfMoreThanOneLapIsCounted) {
  const PassCheck check = Plan(Dataset::range(3).batch(8), over(2, Tail::wrap)).check();
  EXPECT_EQ(wrong(check), "");
  EXPECT_EQ(check.samples, 8U);
  EXPECT_EQ(check.repeated, 5U);
}

TEST(CheckTest, EndlessDataAndStreamsAreRejected) {
  EXPECT_THAT([] { (void)Plan(Dataset::range(3).batch(2).repeat()).check(); },
              ThrowsMessage<ConfigError>(HasSubstr("no end")));
  const auto odd = [](std::int64_t x) { return x % 2 == 1; };
  EXPECT_THAT([&] { (void)Plan(Dataset::range(3).filter(odd).batch(2)).check(); },
              ThrowsMessage<ConfigError>(HasSubstr("stream")));
  class Pairs final : public Sequence {
   public:
    [[nodiscard]] std::uint64_t size() const override { return 2; }
    Sample get(std::uint64_t) override { return Tensor::of(std::vector<std::int64_t>{1, 2}); }
  };
  EXPECT_THAT([] { (void)Plan(Dataset::from_sequence(std::make_shared<Pairs>())).check(); },
              ThrowsMessage<ConfigError>(HasSubstr("the samples of a Sequence")));
  const Dataset vast = Dataset::range(1LL << 40).take(5).batch(2);
  EXPECT_THAT([&] { (void)Plan(vast).check(); }, ThrowsMessage<ConfigError>(HasSubstr("above")));
}

#ifdef PENSTOCK_FAULTS
TEST(CheckTest, ACutThatDeliversASampleTwiceIsDetected) {
  const Plan plan(Dataset::range(100).batch(10), over(2));
  fault::disarm_all();
  fault::arm("cut.twice", 4);  // share 1 of step 3 begins one sample early
  const PassCheck check = plan.check();
  fault::disarm_all();
  ASSERT_TRUE(check.wrong.has_value());
  EXPECT_THAT(*check.wrong,
              AllOf(Field(&PassCheck::Wrong::sample, SampleKey{0, 34}),
                    Field(&PassCheck::Wrong::step, 3U), Field(&PassCheck::Wrong::share, 1U),
                    Field(&PassCheck::Wrong::what, HasSubstr("is delivered too often"))));
  EXPECT_EQ(wrong(plan.check()), "");
}

TEST(CheckTest, ALostSampleIsDetectedInRepeatedData) {
  // Two rounds: one sample is delivered three times, another once.
  const Plan plan(Dataset::range(10).batch(10).repeat(2), over(2));
  fault::disarm_all();
  fault::arm("cut.twice", 1);
  const PassCheck check = plan.check();
  fault::disarm_all();
  ASSERT_TRUE(check.wrong.has_value());
  EXPECT_EQ(check.wrong->sample, (SampleKey{0, 4}));
}
#endif

}  // namespace
}  // namespace penstock
