#include "penstock/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/json.h"
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

TEST(StateTest, EveryTruncationOfTheTextIsRejected) {
  const std::string text = some_state().to_json();
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_THAT(message_of([&] { State::parse(text.substr(0, length)); }),
                HasSubstr("not a complete penstock state"))
        << length;
}

TEST(StateTest, EveryChangedCharacterIsRejected) {
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

TEST(StateTest, AStateOfAnotherDatasetIsRejectedWithTheDifference) {
  Loader other(numbers(8), {.threads = 0});
  const std::string message = message_of([&] { other.restore(some_state()); });
  EXPECT_THAT(message, HasSubstr("shuffle(seed=7)"));
  EXPECT_THAT(message, HasSubstr("shuffle(seed=8)"));
  EXPECT_EQ(other.next()->step(), 0U) << "a rejected state does not move the loader";
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

TEST(StateTest, SetEpochRightAfterARestoreKeepsThePositionInTheSameEpochOnly) {
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

TEST(StateTest, APositionBeyondTheDataIsRejected) {
  Loader loader(numbers(), {.threads = 0});
  State state = some_state();
  state.position = 101;
  EXPECT_THAT(message_of([&] { loader.restore(state); }), HasSubstr("101"));
}

/// `state` after `change` to its text, with a valid checksum.
std::string changed(const State& state, const std::function<void(Json&)>& change) {
  Json fields = *parse_json(state.to_json());
  fields.erase("check");
  change(fields);
  Digest digest;
  digest.add(fields.dump());
  fields["check"] = digest.text();
  return fields.dump();
}

TEST(StateTest, ImpossibleNumbersAreRejectedEvenWithAValidChecksum) {
  const State state = some_state();
  EXPECT_EQ(State::parse(changed(state, [](Json&) {})), state);
  const auto refused = [&](const std::function<void(Json&)>& change) {
    return message_of([&] { (void)State::parse(changed(state, change)); });
  };
  const std::string garbled = "not a complete penstock state";
  EXPECT_THAT(refused([](Json& f) { f["step"] = UINT64_MAX; }), HasSubstr(garbled));
  EXPECT_THAT(refused([](Json& f) { f["epoch"] = UINT64_MAX; }), HasSubstr(garbled));
  EXPECT_THAT(refused([](Json& f) { f["epochs"] = {1e300, 0}; }), HasSubstr(garbled));
  EXPECT_THAT(refused([](Json& f) { f["epochs"] = {1, -1}; }), HasSubstr(garbled));
  EXPECT_THAT(refused([](Json& f) { f["sizes"] = {{0, 0, -1}}; }), HasSubstr(garbled));
  EXPECT_THAT(refused([](Json& f) { f["sizes"] = {{0, 0, 2.5}}; }), HasSubstr(garbled));
  EXPECT_THAT(refused([](Json& f) { f["unit"] = "rows"; }), HasSubstr(garbled));
}

TEST(StateTest, AnInconsistentStateIsRejected) {
  Loader loader(numbers(), {.threads = 0});
  const auto refused = [&](const std::function<void(Json&)>& change) {
    return message_of([&] { loader.restore(State::parse(changed(some_state(), change))); });
  };
  EXPECT_EQ(refused([](Json&) {}), "no StateError");
  EXPECT_THAT(refused([](Json& f) { f["position"] = 41; }), HasSubstr("position 41 at step 5"));
  EXPECT_THAT(refused([](Json& f) { f["step"] = 2; }), HasSubstr("position 40 at step 2"));
  EXPECT_THAT(refused([](Json& f) { f["step"] = 1ULL << 60; }), HasSubstr("does not fit"));
  EXPECT_THAT(refused([](Json& f) { f["sizes"] = {{0, 0, 8}, {2, 17, 8}}; }),
              HasSubstr("position 17 at step 2"));
  Loader stream(Dataset::range(50).filter([](std::int64_t x) { return x > 3; }).batch(4),
                {.threads = 0});
  stream.next();
  stream.next();
  const State state = stream.state();
  EXPECT_THAT(message_of([&] {
                stream.restore(State::parse(changed(state, [](Json& f) { f["position"] = 1; })));
              }),
              HasSubstr("position 1 at step 2"));
  EXPECT_THAT(message_of([&] {
                stream.restore(
                    State::parse(changed(state, [](Json& f) { f["step"] = f["position"] = 0; })));
              }),
              HasSubstr("an anchor without a step"));
}

TEST(StateTest, AStateStaysUnderAKilobyteAfterManyChangesOfTheBatchSize) {
  const Dataset data = Dataset::range(100'000).shuffle({.seed = 7});
  std::string text;
  std::vector<std::uint64_t> ids;
  for (int resume = 0; resume < 200; ++resume) {
    Loader loader(data.batch(resume % 2 == 0 ? 8 : 12), {.threads = 0});
    if (!text.empty()) loader.restore(State::parse(text));
    const auto batch = loader.next();
    ids.insert(ids.end(), batch->sample_id().begin(), batch->sample_id().end());
    text = loader.state().to_json();
    ASSERT_LE(text.size(), 1024U) << resume;
  }
  Loader whole(data.batch(2000), {.threads = 0});
  const auto first = whole.next();
  EXPECT_TRUE(std::ranges::equal(ids, first->sample_id())) << ids.size();
  Loader last(data.batch(8), {.threads = 0});
  last.restore(State::parse(text));
  EXPECT_THROW((void)last.step(3), ConfigError) << "its batch size is no longer known";
  EXPECT_NO_THROW((void)last.step(199));
}

TEST(StateTest, AStateRestoredAtAnotherBatchSizeCanBeSavedAtOnce) {
  std::string text = some_state().to_json();
  for (const std::int64_t batch : {5, 8, 9, 5, 7, 8, 11, 3, 4, 8}) {
    Loader loader(Dataset::range(100).shuffle({.seed = 7}).batch(batch), {.threads = 0});
    loader.restore(State::parse(text));
    text = loader.state().to_json();
    if (batch == 9) loader.next();
    if (batch == 9) text = loader.state().to_json();
  }
  EXPECT_EQ(State::parse(text).position, 49U);
  EXPECT_EQ(State::parse(text).step, 6U);
}

}  // namespace
}  // namespace penstock
