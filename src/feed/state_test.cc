#include "penstock/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/loader.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

Dataset numbers(std::uint64_t seed = 7) {
  return Dataset::range(100).shuffle({.seed = seed}).batch(8);
}

State some_state() {
  Loader loader(numbers(), {.threads = 0});
  for (int i = 0; i < 5; ++i) loader.next();
  return loader.state();
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const StateError& error) {
    return error.what();
  }
  return "no StateError";
}

TEST(StateTest, TextRoundTrips) {
  const State state = some_state();
  EXPECT_EQ(State::parse(state.to_json()), state);
  EXPECT_EQ(state.position, 40U);
}

TEST(StateTest, EpochsOfAFeedRoundTrip) {
  State state;
  state.epochs = {3, 4};
  EXPECT_EQ(State::parse(state.to_json()), state);
}

TEST(StateTest, EveryCutOfTheTextIsRefused) {
  const std::string text = some_state().to_json();
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_THAT(message_of([&] { State::parse(text.substr(0, length)); }),
                HasSubstr("not a whole state"))
        << length;
}

TEST(StateTest, EveryChangedCharacterIsRefused) {
  const std::string text = some_state().to_json();
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char other : {'0', '7', '"', '}', ' '}) {
      std::string garbled = text;
      if (garbled[at] == other) continue;
      garbled[at] = other;
      try {
        EXPECT_EQ(State::parse(garbled), some_state()) << garbled;
      } catch (const StateError&) {
      }
    }
  }
}

TEST(StateTest, ANewerFormatNamesBothVersions) {
  std::string text = some_state().to_json();
  text.replace(text.find("\"format\":1"), 10, "\"format\":9");
  EXPECT_THAT(message_of([&] { State::parse(text); }), HasSubstr("format 9"));
}

TEST(StateTest, AStateOfAnotherDatasetIsRefusedWithTheDifference) {
  Loader other(numbers(8), {.threads = 0});
  const std::string message = message_of([&] { other.restore(some_state()); });
  EXPECT_THAT(message, HasSubstr("shuffle(seed=7)"));
  EXPECT_THAT(message, HasSubstr("shuffle(seed=8)"));
  EXPECT_EQ(other.next()->step(), 0U) << "a refused state leaves the loader where it was";
}

TEST(StateTest, AMapAddedSinceIsOnlyReported) {
  Loader other(
      Dataset::range(100).map([](std::int64_t x) { return x + 1; }).shuffle({.seed = 7}).batch(8),
      {.threads = 0});
  ::testing::internal::CaptureStderr();
  other.restore(some_state());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("changed"));
  EXPECT_EQ(other.next()->step(), 5U);
}

TEST(StateTest, ADrawnSeedIsPartOfTheState) {
  const Dataset dataset = Dataset::range(50).shuffle({.seed = Seed::random()}).batch(5);
  Loader first(dataset, {.threads = 0});
  first.next();
  const State state = State::parse(first.state().to_json());
  ASSERT_TRUE(state.drawn_seed.has_value());
  Loader second(dataset, {.threads = 0});
  second.restore(state);
  while (auto expected = first.next()) {
    const auto got = second.next();
    EXPECT_TRUE(std::ranges::equal(got->sample_id(), expected->sample_id()));
  }
}

TEST(StateTest, SetEpochRightAfterARestoreKeepsThePlaceInTheSameEpochOnly) {
  const State state = some_state();
  const auto first_id = [&](const std::vector<std::uint64_t>& epochs, bool receives = false) {
    Loader loader(numbers(), {.threads = 0});
    loader.restore(state);
    if (receives) loader.next();
    for (const std::uint64_t epoch : epochs) loader.set_epoch(epoch);
    return std::pair(loader.next()->step(), loader.epoch());
  };
  EXPECT_EQ(first_id({}), std::pair(5UL, 0UL));
  EXPECT_EQ(first_id({0}), std::pair(5UL, 0UL));
  EXPECT_EQ(first_id({0, 0}), std::pair(5UL, 0UL));
  EXPECT_EQ(first_id({1}), std::pair(0UL, 1UL));
  EXPECT_EQ(first_id({1, 0}), std::pair(0UL, 0UL));
  EXPECT_EQ(first_id({0}, true), std::pair(0UL, 0UL)) << "a batch was received since";
}

TEST(StateTest, APositionBeyondTheDataIsRefused) {
  Loader loader(numbers(), {.threads = 0});
  State state = some_state();
  state.position = 101;
  EXPECT_THAT(message_of([&] { loader.restore(state); }), HasSubstr("101"));
}

}  // namespace
}  // namespace penstock
