#include "codec/audio_resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "base/thread.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using Frames = std::vector<float>;

Frames noise(std::size_t count) {
  std::mt19937 random(1);  // NOLINT: the same each time
  Frames values(count);
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
  return values;
}

/// Frames [first, first + count) of the result, from those frames only that they need.
Frames resampled(const Frames& in, const Rates& rates, std::int64_t first, std::int64_t count,
                 int channels = 1) {
  FrameRange range = frames_needed(first, count, rates);
  const auto total = static_cast<std::int64_t>(in.size()) / channels;
  range.frames = std::min(range.frames, total - range.first);
  Frames out(static_cast<std::size_t>(count * channels));
  const auto done = resample_audio({.from = in.data() + range.first * channels,
                                    .from_frames = range.frames,
                                    .to = out.data(),
                                    .to_frames = count,
                                    .unwanted = range.unwanted,
                                    .channels = channels},
                                   rates);
  EXPECT_TRUE(done) << done.failure().message;
  return out;
}
Frames resampled(const Frames& in, const Rates& rates) {
  return resampled(in, rates, 0, resampled_frames(static_cast<std::int64_t>(in.size()), rates));
}

TEST(AudioResampleTest, ThereIsAFrameForEachTimeWithinTheRecording) {
  EXPECT_EQ(resampled_frames(0, {44'100, 16'000}), 0);
  EXPECT_EQ(resampled_frames(1, {44'100, 16'000}), 1);
  EXPECT_EQ(resampled_frames(1, {16'000, 44'100}), 3);
  EXPECT_EQ(resampled_frames(44'100, {44'100, 16'000}), 16'000);
  EXPECT_EQ(resampled_frames(44'101, {44'100, 16'000}), 16'001);
  for (const Rates rates : {Rates{3, 7}, Rates{7, 3}, Rates{44'100, 48'000}})
    for (std::int64_t frames = 0; frames < 200; ++frames) {
      const std::int64_t result = resampled_frames(frames, rates);
      EXPECT_TRUE(result * rates.from >= frames * rates.to);
      EXPECT_TRUE((result - 1) * rates.from < frames * rates.to);
    }
  EXPECT_GT(resampled_frames(std::int64_t{1} << 40, {4096, 1 << 20}), std::int64_t{1} << 47);
}

TEST(AudioResampleTest, TheRangeNeededIsShortAndBeginsAtATimeOfBothRates) {
  for (const Rates rates : {Rates{44'100, 16'000}, Rates{16'000, 44'100}, Rates{48'000, 8000}}) {
    for (const std::int64_t first : {0, 1, 1000, 999'999}) {
      const FrameRange range = frames_needed(first, 100, rates);
      EXPECT_EQ(range.first * rates.to % rates.from, 0);
      EXPECT_EQ(range.first * rates.to / rates.from + range.unwanted, first);
      EXPECT_LT(range.frames, 5000);
    }
  }
}

TEST(AudioResampleTest, RatesThatAreTooFarApartAreRefused) {
  EXPECT_TRUE(check_rates({44'100, 16'000}));
  EXPECT_TRUE(check_rates({8000, 8000 * 256 / 2}));
  for (const Rates rates :
       {Rates{0, 16'000}, Rates{16'000, 0}, Rates{1, 257}, Rates{257, 1}, Rates{1 << 21, 16'000}}) {
    const auto checked = check_rates(rates);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.failure().message, HasSubstr("is not resampled"));
  }
}

TEST(AudioResampleTest, AToneKeepsItsFrequencyAndAmplitude) {
  if (!can_resample_audio()) GTEST_SKIP() << "without libsoxr";
  for (const Rates rates : {Rates{44'100, 16'000}, Rates{8000, 16'000}, Rates{16'000, 22'050},
                            Rates{48'000, 16'000}, Rates{44'101, 16'000}}) {
    const double hertz = 440;
    const auto tone = [&](std::int64_t frame, int rate) {
      return 0.5 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(frame) / rate);
    };
    Frames in(static_cast<std::size_t>(rates.from));
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<float>(tone(static_cast<std::int64_t>(i), rates.from));
    const Frames out = resampled(in, rates);
    ASSERT_EQ(out.size(), static_cast<std::size_t>(rates.to));
    // The tone begins and ends suddenly, which rings.
    for (std::size_t i = 1000; i + 1000 < out.size(); ++i)
      ASSERT_NEAR(out[i], tone(static_cast<std::int64_t>(i), rates.to), 2e-5) << i;
  }
}

TEST(AudioResampleTest, ToneAboveTheNewRangeIsRemoved) {
  if (!can_resample_audio()) GTEST_SKIP() << "without libsoxr";
  Frames in(44'100);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>(
        std::sin(2 * std::numbers::pi * 12'000 * static_cast<double>(i) / 44'100));
  const Frames out = resampled(in, {44'100, 16'000});
  for (std::size_t i = 1000; i + 1000 < out.size(); ++i) ASSERT_NEAR(out[i], 0, 1e-4) << i;
}

TEST(AudioResampleTest, APartIsThatPartOfResamplingAll) {
  if (!can_resample_audio()) GTEST_SKIP() << "without libsoxr";
  struct Case {
    Rates rates;
    float tolerance;
  };
  for (const auto& [rates, tolerance] :
       {Case{{44'100, 16'000}, 2e-6F}, Case{{48'000, 16'000}, 2e-6F}, Case{{16'000, 44'100}, 2e-6F},
        Case{{8000, 16'000}, 2e-6F}, Case{{192'000, 1000}, 2e-6F}, Case{{96'000, 11'025}, 2e-6F},
        Case{{44'101, 16'000}, 2e-6F}, Case{{16'000, 16'001}, 1e-4F}}) {
    const Frames in = noise(100'000);
    const Frames all = resampled(in, rates);
    const auto total = static_cast<std::int64_t>(all.size());
    std::mt19937 draw(3);  // NOLINT: the same each time
    for (int i = 0; i < 30; ++i) {
      const std::int64_t count = 1 + static_cast<std::int64_t>(draw()) % std::min(total, 2000L);
      const std::int64_t first = i == 0   ? 0
                                 : i == 1 ? total - count
                                          : static_cast<std::int64_t>(draw()) % (total - count + 1);
      const Frames part = resampled(in, rates, first, count);
      for (std::size_t k = 0; k < part.size(); ++k)
        ASSERT_NEAR(part[k], all[static_cast<std::size_t>(first) + k], tolerance)
            << rates.from << " to " << rates.to << ", frame " << first << " + " << k;
    }
  }
}

TEST(AudioResampleTest, ChannelsAreResampledSeparately) {
  if (!can_resample_audio()) GTEST_SKIP() << "without libsoxr";
  const Frames left = noise(5000);
  Frames both;
  for (const float value : left) both.insert(both.end(), {value, -0.5F * value});
  const Rates rates{44'100, 16'000};
  const std::int64_t count = resampled_frames(5000, rates);
  const Frames one = resampled(left, rates);
  const Frames two = resampled(both, rates, 0, count, 2);
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_NEAR(two[2 * i], one[i], 2e-6F);
    ASSERT_NEAR(two[2 * i + 1], -0.5F * one[i], 2e-6F);
  }
}

TEST(AudioResampleTest, ManyThreadsComputeTheSame) {
  if (!can_resample_audio()) GTEST_SKIP() << "without libsoxr";
  const Frames in = noise(20'000);
  const std::vector<Rates> all{
      {44'100, 16'000}, {16'000, 44'100}, {44'101, 16'000}, {48'000, 8000}};
  std::vector<Frames> expected;
  for (const Rates& rates : all) expected.push_back(resampled(in, rates));
  std::vector<int> wrong(8);
  {
    std::vector<Thread> threads;
    for (std::size_t thread = 0; thread < wrong.size(); ++thread)
      threads.emplace_back("resampler", [&, thread] {
        for (std::size_t i = 0; i < 20; ++i) {
          const std::size_t which = (thread + i) % all.size();
          if (resampled(in, all[which]) != expected[which]) ++wrong[thread];
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(8));
}

}  // namespace
}  // namespace penstock
