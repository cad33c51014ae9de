#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::vector<std::int64_t>> windows_of(const Dataset& dataset, unsigned threads = 2) {
  std::vector<std::vector<std::int64_t>> windows;
  Loader loader(dataset.batch(3), {.threads = threads});
  for (const Batch& batch : loader)
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      const Sample sample = batch.row(row);
      const auto values = sample.tensor().values<std::int64_t>();
      windows.emplace_back(values.begin(), values.end());
    }
  return windows;
}

TEST(WindowVerbTest, EveryWindowHasTheSamplesThatTheDefinitionNames) {
  for (std::int64_t samples = 0; samples < 12; ++samples)
    for (std::int64_t size = 1; size < 5; ++size)
      for (std::int64_t shift = 1; shift < 4; ++shift)
        for (std::int64_t stride = 1; stride < 3; ++stride)
          for (const bool drop : {true, false}) {
            std::vector<std::vector<std::int64_t>> expected;
            for (std::int64_t first = 0; first < samples; first += shift) {
              std::vector<std::int64_t> window;
              for (std::int64_t i = 0; i < size && first + i * stride < samples; ++i)
                window.push_back(first + i * stride);
              if (!drop || window.size() == static_cast<std::size_t>(size))
                expected.push_back(window);
            }
            const Dataset dataset = Dataset::range(samples).window(
                static_cast<std::uint64_t>(size),
                {static_cast<std::uint64_t>(shift), static_cast<std::uint64_t>(stride), drop});
            EXPECT_EQ(windows_of(dataset, 0), expected);
            EXPECT_EQ(dataset.cardinality().count(), expected.size());
          }
}

TEST(WindowVerbTest, WindowsCanBeShuffledAndMapped) {
  const Dataset steps = Dataset::range(20).map([](std::int64_t x) { return 10 * x; });
  auto windows = windows_of(steps.window(4, {.shift = 1}).shuffle({.seed = 1}));
  EXPECT_EQ(windows.size(), 17U);
  EXPECT_NE(windows.front().front(), 0);
  std::ranges::sort(windows);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto first = static_cast<std::int64_t>(10 * i);
    EXPECT_THAT(windows[i], ElementsAre(first, first + 10, first + 20, first + 30));
  }
}

TEST(WindowVerbTest, AFailingSampleFailsItsWindows) {
  const Dataset steps = Dataset::range(6).map([](std::int64_t x) {
    if (x == 3) throw std::runtime_error("bad");
    return x;
  });
  EXPECT_THAT([&] { (void)windows_of(steps.window(2)); },
              ThrowsMessage<SampleError>(HasSubstr("sample 3")));
  Loader loader(steps.window(2).batch(3), {.threads = 1, .on_error = OnError::skip});
  const auto batch = loader.next();
  EXPECT_EQ(batch->rows(), 2U);
  EXPECT_THAT((*batch)[""].values<std::int64_t>(), ElementsAre(0, 1, 4, 5));
}

TEST(WindowVerbTest, WrongArgumentsAndInputsAreRefused) {
  EXPECT_THAT([] { (void)Dataset::range(3).window(0); },
              ThrowsMessage<ConfigError>(HasSubstr("size must be from 1")));
  EXPECT_THAT([] { (void)Dataset::range(3).window(2, {.stride = 0}); },
              ThrowsMessage<ConfigError>(HasSubstr("stride must be from 1")));
  EXPECT_THAT([] { (void)Dataset::range(3).repeat().window(2); },
              ThrowsMessage<ConfigError>(HasSubstr("repeat after window")));
  EXPECT_THAT([] { (void)Dataset::range(3).filter([](std::int64_t) { return true; }).window(2); },
              ThrowsMessage<ConfigError>(HasSubstr("a stream has no numbered samples")));
  EXPECT_THAT(
      [] {
        (void)Dataset::from_ragged(Tensor::of(std::vector<std::int64_t>{1, 2}),
                                   Tensor::of(std::vector<std::int64_t>{0, 0, 2}))
            .window(2);
      },
      ThrowsMessage<ConfigError>(HasSubstr("differs in size")));
}

}  // namespace
}  // namespace penstock
