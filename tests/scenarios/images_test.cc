// Programs that load images.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/mutex.h"
#include "base/temp_folder_for_tests.h"
#include "codec/images_for_tests.h"
#include "tests/scenarios/article.h"

namespace penstock::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string text_of(const made::Values& file) {
  return {file.begin(), file.end()};
}

/// `count` PNGs in the class folders cat and dog, alternating.
void write_pngs(const TempFolder& folder, int count, unsigned size) {
  for (int i = 0; i < count; ++i)
    folder.write(fmt::format("{}/{:03}.png", i % 2 == 0 ? "cat" : "dog", i),
                 text_of(made::png({.width = size, .height = size})));
}

TEST(Scenario, a003_brightness_range) {
  // resize, then brightness 0.2: on bytes and on floats it moves values by up to a fifth of white.
  const TempFolder folder;
  write_pngs(folder, 8, 100);
  const Dataset files = Dataset::image_folder(folder.path());
  const auto most_change = [&](const image::Chain& plain, const image::Chain& brighter) {
    double most = 0;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const Sample before = files.map(plain).sample(i);
      const Sample after = files.map(brighter).sample(i);
      const bool bytes = before["image"].dtype() == Dtype::u8;
      const auto value = [bytes](const Tensor& tensor, std::size_t k) {
        return bytes ? tensor.values<std::uint8_t>()[k] / 255.0
                     : static_cast<double>(tensor.values<float>()[k]);
      };
      for (std::size_t k = 0; k < 64 * 64 * 3; ++k)
        most = std::max(most, std::abs(value(after["image"], k) - value(before["image"], k)));
    }
    return most;
  };
  const image::Chain plain = image::decode().resize(64, 64);
  const double bytes = most_change(plain, plain.random_brightness(0.2));
  const double floats = most_change(plain.to_float(), plain.to_float().random_brightness(0.2));
  EXPECT_GT(bytes, 0.05);
  EXPECT_LE(bytes, 0.202);
  EXPECT_NEAR(bytes, floats, 0.005) << "0.2 means the same on both, but for rounding";
  EXPECT_THROW((void)files.map(plain.random_brightness(0.001)), ConfigError)
      << "a delta without effect is rejected";
  EXPECT_THROW((void)plain.random_brightness(51), ConfigError) << "not in levels";
}

TEST(Scenario, a003_full_pipeline) {
  // PNGs of 100 x 100 to floats of 64 x 64, mirrored, brighter or darker, and a model that learns.
  const TempFolder folder;
  for (int i = 0; i < 23; ++i) {
    const bool dark = i % 2 == 0;
    made::Values pixels = made::noise(100 * 100 * 3);
    for (auto& value : pixels) value = static_cast<std::uint8_t>(value / 2 + (dark ? 0 : 127));
    folder.write(fmt::format("{}/{:03}.png", dark ? "dark" : "light", i),
                 text_of(made::png({.width = 100, .height = 100}, pixels)));
  }
  const Dataset train =
      Dataset::image_folder(folder.path())
          .shuffle({.seed = 7})
          .map(image::decode().resize(64, 64).random_flip().random_brightness(0.1).to_float())
          .batch(8);
  MirroredStrategy strategy(devices(3));
  Feed feed = strategy.distribute(train);
  EXPECT_EQ(feed.plan().steps().count(), 3U);
  double weight = 0;
  double bias = 0;
  Mutex mutex;
  std::map<std::uint64_t, std::set<double>> means;  // of each picture, over the epochs
  for (int epoch = 0; epoch < 60; ++epoch)
    while (auto step = feed.next()) {
      const auto gradient = strategy.run(
          [&](Replica&, const Batch& share) {
            std::vector<double> sums{0, 0};
            const auto pixels = share.values<float>("image");
            const auto labels = share.values<std::int64_t>("label");
            for (std::size_t i = 0; i < share.rows(); ++i) {
              const auto* const first = pixels.data() + i * 64 * 64 * 3;
              const double mean =
                  std::accumulate(first, first + 64 * 64 * 3, 0.0) / (64 * 64 * 3) - 0.5;
              const double error =
                  1 / (1 + std::exp(-(weight * mean + bias))) - static_cast<double>(labels[i]);
              const Lock lock(mutex);
              means[share.sample_id()[i]].insert(mean);
              sums[0] += error * mean;
              sums[1] += error;
            }
            return Tensor::of(sums);
          },
          *step);
      const Tensor sum = strategy.reduce(Reduce::sum, gradient);
      weight -= 20 * sum.values<double>()[0] / static_cast<double>(step->global_valid());
      bias -= sum.values<double>()[1] / static_cast<double>(step->global_valid());
    }
  EXPECT_GT(weight, 1) << "light pictures are class 1";
  EXPECT_EQ(means.size(), 23U) << "every picture was seen";
  for (const auto& [id, each] : means) {
    const double spread = *each.rbegin() - *each.begin();
    EXPECT_GT(spread, 0.05) << "picture " << id << " has the same brightness in every epoch";
    EXPECT_LT(spread, 0.21) << "picture " << id << " is brighter or darker than requested";
  }
}

TEST(Scenario, d_corrupt_png) {
  const TempFolder folder;
  write_pngs(folder, 20, 32);
  const std::string broken = text_of(made::png({.width = 32, .height = 32}));
  folder.write("dog/007.png", broken.substr(0, broken.size() / 2));
  const Dataset dataset = Dataset::image_folder(folder.path()).map(image::decode().resize(16, 16));
  // By name "cat/000.png" .. "cat/018.png", then "dog/001.png" ..: file 7 is sample 13.
  try {
    Loader loader(dataset.batch(4));
    while (loader.next()) {
    }
    FAIL() << "the file is broken";
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("dog/007.png"), HasSubstr("sample 13"),
                                    HasSubstr("PNG"), HasSubstr("decode")));
    EXPECT_THAT(error.where().file, HasSubstr("dog/007.png"));
  }
  for (const std::uint32_t replicas : {1U, 2U, 3U}) {
    Loader loader(dataset.batch(4),
                  {.shares = Shares{replicas, 0, replicas}, .on_error = OnError::skip});
    std::vector<std::uint64_t> ids;
    std::uint64_t steps = 0;
    while (const auto step = loader.next_step()) {
      ++steps;
      for (const Batch& share : *step)
        for (const std::uint64_t id : share.sample_id()) ids.push_back(id);
    }
    EXPECT_EQ(steps, 5U) << "as many steps as without the broken file";
    EXPECT_EQ(ids.size(), 19U);
    EXPECT_EQ(std::ranges::count(ids, 13U), 0);
    ASSERT_EQ(loader.ledger().count(), 1U);
    EXPECT_THAT(loader.ledger().entries()[0].file, HasSubstr("dog/007.png"));
    EXPECT_EQ(loader.ledger().entries()[0].sample.number, 13U);
  }
}

}  // namespace
}  // namespace penstock::scenario
