#include "kernel/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/mix.h"
#include "kernel/targets_for_tests.h"

namespace penstock {
namespace {

constexpr Filter kFilters[] = {Filter::nearest, Filter::bilinear, Filter::bicubic, Filter::area};

/// A row of bytes with the slack after it that vector loads may read.
std::vector<std::uint8_t> random_row(std::size_t values, std::uint64_t seed) {
  std::vector<std::uint8_t> row(values + kRowSlackBytes);
  for (std::size_t i = 0; i < values; ++i) row[i] = static_cast<std::uint8_t>(mix(seed + i));
  return row;
}

TEST(ResampleTest, WeightsSumToOneAndLieInsideTheSource) {
  Scratch scratch;
  for (const Filter filter : kFilters)
    for (const bool antialias : {false, true})
      for (std::int64_t in = 1; in <= 40; ++in)
        for (std::int64_t out = 1; out <= 40; ++out) {
          const Scratch::Frame frame(scratch);
          const Axis axis = make_axis({in, out, 0, out, filter, antialias}, scratch);
          for (std::size_t i = 0; i < axis.count; ++i) {
            std::int32_t fixed = 0;
            double real = 0;
            for (std::size_t k = 0; k < axis.taps; ++k) {
              fixed += axis.fixed[i * axis.taps + k];
              real += static_cast<double>(axis.real[i * axis.taps + k]);
              const bool outside = axis.first[i] + static_cast<std::int64_t>(k) >= in;
              if (outside) {
                ASSERT_EQ(axis.fixed[i * axis.taps + k], 0);
              }
            }
            ASSERT_EQ(fixed, 1 << 14) << in << " to " << out;
            ASSERT_NEAR(real, 1, 1e-6) << in << " to " << out;
          }
          ASSERT_GE(axis.source_first, 0);
          ASSERT_LE(axis.source_end, in);
        }
}

TEST(ResampleTest, APartOfTheResultHasTheSameWeightsAsTheWhole) {
  Scratch scratch;
  const Axis whole = make_axis({50, 23, 0, 23, Filter::bilinear, true}, scratch);
  const Axis part = make_axis({50, 23, 7, 5, Filter::bilinear, true}, scratch);
  const Axis mirrored = make_axis({50, 23, 7, 5, Filter::bilinear, true, true}, scratch);
  ASSERT_EQ(whole.taps, part.taps);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(part.first[i], whole.first[i + 7]);
    EXPECT_EQ(mirrored.first[4 - i], part.first[i]);
    for (std::size_t k = 0; k < whole.taps; ++k) {
      EXPECT_EQ(part.fixed[i * part.taps + k], whole.fixed[(i + 7) * whole.taps + k]);
      EXPECT_EQ(mirrored.fixed[(4 - i) * part.taps + k], part.fixed[i * part.taps + k]);
    }
  }
}

TEST(ResampleTest, ACachedAxisEqualsANewOne) {
  // More kinds than are cached, each requested twice in a row and again after the others.
  const auto text_of = [](const AxisRequest& request) {
    Scratch scratch;
    const Axis axis = make_axis(request, scratch);
    std::vector<double> text{static_cast<double>(axis.taps), static_cast<double>(axis.source_first),
                             static_cast<double>(axis.source_end)};
    text.insert(text.end(), axis.first, axis.first + axis.count);
    text.insert(text.end(), axis.fixed, axis.fixed + axis.count * axis.taps);
    text.insert(text.end(), axis.real, axis.real + axis.count * axis.taps);
    return text;
  };
  std::vector<AxisRequest> requests;
  for (const Filter filter : kFilters)
    for (const bool mirrored : {false, true})
      requests.push_back({9, 5, 1, 3, filter, true, mirrored});
  std::vector<std::vector<double>> made;
  for (const AxisRequest& request : requests) {
    made.push_back(text_of(request));
    EXPECT_EQ(text_of(request), made.back());
  }
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(text_of(requests[i]), made[i]);
  for (std::size_t i = 1; i < made.size(); ++i) EXPECT_NE(made[i], made[i - 1]);
}

#if defined(PENSTOCK_HIGHWAY) && defined(__x86_64__)
TEST(ResampleTest, ThereIsMoreThanOneTarget) {
  EXPECT_GT(for_each_target([] {}), 1);
}
#endif

TEST(ResampleTest, MixedRowsEqualThePlainFormOnEveryTarget) {
  for_each_target([] {
    for (const std::size_t values : {1U, 2U, 3U, 15U, 16U, 17U, 31U, 64U, 300U, 1501U})
      for (const std::size_t taps : {2U, 4U, 8U, 30U}) {
        std::vector<std::vector<std::uint8_t>> rows;
        std::vector<const std::uint8_t*> pointers;
        rows.reserve(taps);
        pointers.reserve(taps);
        for (std::size_t k = 0; k < taps; ++k) rows.push_back(random_row(values, 1000 * k + taps));
        for (const auto& row : rows) pointers.push_back(row.data());
        std::vector<std::int16_t> weights(taps);
        for (std::size_t k = 0; k < taps; ++k)
          weights[k] = static_cast<std::int16_t>(static_cast<int>(mix(k) % 12000) - 2000);
        std::vector<std::int16_t> wanted(values + kRowSlackBytes);
        std::vector<std::int16_t> got(values + kRowSlackBytes);
        plain::mix_rows(pointers.data(), weights.data(), taps, values, wanted.data());
        mix_rows(pointers.data(), weights.data(), taps, values, got.data());
        wanted.resize(values);
        got.resize(values);
        ASSERT_EQ(got, wanted) << values << " values, " << taps << " taps";
      }
  });
}

TEST(ResampleTest, MixedColumnsEqualThePlainFormOnEveryTarget) {
  for_each_target([] {
    Scratch scratch;
    for (int channels = 1; channels <= 4; ++channels)
      for (const std::int64_t in : {1, 2, 3, 7, 40, 333})
        for (const std::int64_t out : {1, 2, 5, 64, 101}) {
          const Scratch::Frame frame(scratch);
          const Axis axis = make_axis({in, out, 0, out, Filter::bilinear, true}, scratch);
          const auto values = static_cast<std::size_t>(in * channels);
          std::vector<std::int16_t> row(values + axis.taps * 4 + kRowSlackBytes);
          for (std::size_t i = 0; i < values; ++i)
            row[i] = static_cast<std::int16_t>(mix(i) % (255 * 64 + 1));
          const auto count = 4 * static_cast<std::size_t>(out);
          std::vector<float> wanted(count);
          std::vector<float> got(count);
          plain::mix_columns(row.data(), axis, channels, wanted.data());
          mix_columns(row.data(), axis, channels, got.data());
          for (std::size_t i = 0; i < count; ++i)
            if (static_cast<int>(i % 4) < channels) {
              ASSERT_EQ(got[i], wanted[i]) << i;
            }
        }
  });
}

TEST(ResampleTest, FloatsAreMixedWithTheSameWeights) {
  Scratch scratch;
  const Axis axis = make_axis({9, 4, 0, 4, Filter::bicubic, true}, scratch);
  std::vector<float> row(4 * (9 + axis.taps));
  for (std::size_t i = 0; i < 36; ++i) row[i] = static_cast<float>(mix(i) % 256);
  std::vector<float> got(16);
  mix_columns(row.data(), axis, got.data());
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t c = 0; c < 4; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < axis.taps; ++k)
        sum += static_cast<double>(axis.real[i * axis.taps + k]) *
               static_cast<double>(row[4 * (static_cast<std::size_t>(axis.first[i]) + k) + c]);
      EXPECT_NEAR(static_cast<double>(got[4 * i + c]), sum, 1e-3);
    }
}

}  // namespace
}  // namespace penstock
