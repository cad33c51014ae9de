#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "penstock/loader.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Values = std::vector<std::int64_t>;

std::int64_t number(const Sample& sample) {
  return sample.tensor().item<std::int64_t>();
}

/// Running sums.
Dataset sums(const Dataset& numbers, const ScanOptions& options = {}) {
  return numbers.scan(
      Tensor::scalar(std::int64_t{0}),
      [](const Sample& state, const Sample& x) -> std::pair<Sample, Sample> {
        const std::int64_t sum = number(state) + number(x);
        return {Tensor::scalar(sum), Tensor::scalar(sum)};
      },
      options);
}

Values values_of(Loader& loader) {
  Values values;
  while (const auto batch = loader.next()) {
    const auto rows = batch->values<std::int64_t>();
    values.insert(values.end(), rows.begin(), rows.end());
  }
  return values;
}

Values values_of(const Dataset& dataset, LoaderOptions options = {}) {
  if (!options.threads) options.threads = 2;
  Loader loader(dataset.batch(3), options);
  return values_of(loader);
}

TEST(ScanTest, EachElementSeesTheStateThatTheOneBeforeLeft) {
  EXPECT_THAT(values_of(sums(Dataset::range(5))), ElementsAre(0, 1, 3, 6, 10));
  const Dataset declared = sums(Dataset::range(5), {.spec = ElementSpec::single(Dtype::i64)});
  EXPECT_THAT(values_of(declared.map([](std::int64_t x) { return -x; })),
              ElementsAre(0, -1, -3, -6, -10));
  EXPECT_TRUE(declared.streamed());
}

TEST(ScanTest, EveryRoundAndEveryEpochStartsFromTheInitialState) {
  EXPECT_THAT(values_of(sums(Dataset::range(3)).repeat(2)), ElementsAre(0, 1, 3, 0, 1, 3));
  Loader loader(sums(Dataset::range(3)).batch(2), {.threads = 2});
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_THAT(values_of(loader), ElementsAre(0, 1, 3));
}

TEST(ScanTest, StateAndOutputMayBeStructuredAndOfDifferentFields) {
  const Dataset dataset = Dataset::range(4).scan(
      Sample::dict({{"last", Tensor::bytes("", Dtype::string)},
                    {"mean", Tensor::of(std::vector<float>{0, 0})}}),
      [](const Sample& state, const Sample& x) -> std::pair<Sample, Sample> {
        const auto before = state["mean"].values<float>();
        const auto value = static_cast<float>(number(x));
        return {Sample::dict({{"last", Tensor::bytes(std::to_string(number(x)), Dtype::string)},
                              {"mean", Tensor::of(std::vector<float>{before[0] + value, 1})}}),
                Sample::tuple({x, Tensor::scalar(before[0]), state["last"]})};
      });
  Loader loader(dataset.batch(4), {.threads = 2});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->values<float>("1"), ElementsAre(0, 0, 1, 3));
}

// The state of the scan is part of the loader's state.
TEST(ScanTest, ResumingAtEveryStepGivesTheValuesOfAnUninterruptedPass) {
  const Dataset dataset = sums(Dataset::range(50).shuffle({.seed = 5})).batch(4);
  Loader whole(dataset, {.threads = 2});
  const Values wanted = values_of(whole);
  for (std::size_t taken = 0; taken * 4 < wanted.size(); ++taken) {
    Loader before(dataset, {.threads = 2});
    for (std::size_t i = 0; i < taken; ++i) ASSERT_TRUE(before.next());
    const State state = State::parse(before.state().to_json());
    Loader after(dataset, {.threads = 1});
    after.restore(state);
    EXPECT_EQ(values_of(after),
              Values(wanted.begin() + static_cast<std::ptrdiff_t>(4 * taken), wanted.end()))
        << "after " << taken << " steps";
  }
}

TEST(ScanTest, TheLargestStateIsSavedAndRestored) {
  const auto dataset = [] {
    return Dataset::range(8)
        .scan(Tensor::of(std::vector<std::uint8_t>(16 << 10, 255)),
              [](const Sample& state, const Sample& x) -> std::pair<Sample, Sample> {
                const auto bytes = state.tensor().values<std::uint8_t>();
                std::vector<std::uint8_t> next(bytes.begin(), bytes.end());
                ++next[static_cast<std::size_t>(number(x))];
                return {Tensor::of(next), Tensor::scalar(static_cast<std::int64_t>(bytes[0]))};
              })
        .batch(2);
  };
  Loader loader(dataset(), {.threads = 2});
  ASSERT_TRUE(loader.next());
  Loader after(dataset(), {.threads = 2});
  after.restore(State::parse(loader.state().to_json()));
  EXPECT_THAT(values_of(after), ElementsAre(0, 0, 0, 0, 0, 0)) << "255 + 1, before the resume";
}

TEST(ScanTest, AFunctionThatReturnsItsElementAsStateKeepsItsValue) {
  const Dataset differences = Dataset::range(0, 50, 5).scan(
      Tensor::scalar(std::int64_t{0}),
      [](const Sample& state, const Sample& x) -> std::pair<Sample, Sample> {
        return {x, Tensor::scalar(number(x) - number(state))};
      });
  EXPECT_THAT(values_of(differences), ElementsAre(0, 5, 5, 5, 5, 5, 5, 5, 5, 5));
}

Dataset failing_at(std::int64_t bad) {
  return Dataset::range(6).scan(
      Tensor::scalar(std::int64_t{0}),
      [bad](const Sample& state, const Sample& x) -> std::pair<Sample, Sample> {
        if (number(x) == bad) throw std::runtime_error("bad value");
        const std::int64_t sum = number(state) + number(x);
        return {Tensor::scalar(sum), Tensor::scalar(sum)};
      },
      {.name = "sum"});
}

TEST(ScanTest, AFailureNamesTheSampleAndASkippedElementLeavesTheState) {
  EXPECT_THAT([] { values_of(failing_at(4)); },
              ThrowsMessage<SampleError>(
                  AllOf(HasSubstr("bad value"), HasSubstr("scan(\"sum\""), HasSubstr("sample 4"))));
  EXPECT_THAT(values_of(failing_at(4), {.on_error = OnError::skip}), ElementsAre(0, 1, 3, 6, 11));
}

TEST(ScanTest, AStateOfOtherFieldsOrMoreThan16KilobytesIsAnError) {
  const auto run = [](const Sample& next) {
    return [next] {
      values_of(Dataset::range(3).scan(
          Tensor::scalar(std::int64_t{0}),
          [next](const Sample&, const Sample& x) { return std::pair(next, x); }));
    };
  };
  EXPECT_THAT(run(Tensor::scalar(1.5)),
              ThrowsMessage<SampleError>(
                  AllOf(HasSubstr("returned a state f64[]"), HasSubstr("initial state is i64[]"))));
  EXPECT_THAT(run(Tensor::of(std::vector<std::int64_t>(10'000))),
              ThrowsMessage<SampleError>(HasSubstr("80000 bytes; the limit is 16384")));
}

TEST(ScanTest, BatchesAreRefused) {
  EXPECT_THAT([] { (void)sums(Dataset::range(4).batch(2)); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("scan"), HasSubstr("then batch"))));
}

TEST(ScanTest, TheInitialStateIsPartOfTheValuesDigestAndNotOfTheOrder) {
  const auto from = [](std::int64_t start) {
    return Dataset::range(5).scan(Tensor::scalar(start), [](const Sample& state, const Sample& x) {
      return std::pair(state, x);
    });
  };
  EXPECT_EQ(from(1).digests().order, from(2).digests().order);
  EXPECT_NE(from(1).digests().values, from(2).digests().values);
}

TEST(ScanTest, ASerializedPlanFindsTheFunctionAndTheInitialStateByName) {
  const Dataset dataset = sums(Dataset::range(10), {.name = "sum"}).batch(4);
  const Plan back = Plan::parse(Plan(dataset).serialize(), {dataset});
  EXPECT_EQ(back.serialize(), Plan(dataset).serialize());
  Loader loader(back, {.threads = 2});
  Loader direct(dataset, {.threads = 2});
  EXPECT_EQ(values_of(loader), values_of(direct));
  EXPECT_THAT([] { (void)Plan(sums(Dataset::range(4)).batch(2)).serialize(); },
              ThrowsMessage<ConfigError>(HasSubstr("scan")));
}

// A state comes from a file: whatever is wrong with it is an error and nothing else.
TEST(ScanTest, ADamagedStateIsAStateError) {
  const Dataset dataset = sums(Dataset::range(50)).batch(4);
  Loader loader(dataset, {.threads = 2});
  loader.next();
  const State good = loader.state();
  ASSERT_FALSE(good.stream->texts.empty());
  for (const char* text : {"", ":", "::", ":0:", ":8:", ":8:short", ":9:123456789", "2,:8:12345678",
                           "1,:8:12345678more", ":8:12345678:", "99999999999999999999,:8:12345678",
                           "-1,:8:12345678", ":x:12345678", "8:8:12345678"}) {
    State bad = good;
    bad.stream->texts.front() = text;
    Loader other(dataset, {.threads = 2});
    EXPECT_THROW(
        {
          other.restore(bad);
          (void)other.next();
        },
        StateError)
        << text;
  }
}

}  // namespace
}  // namespace penstock
