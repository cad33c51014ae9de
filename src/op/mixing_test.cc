// mixup and cutmix through the public API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "penstock/image.h"
#include "penstock/loader.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// Image i is filled with the number i; its label is class i % 4.
Dataset numbered(std::int64_t count, const Shape& shape) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i);
  const ElementSpec spec =
      ElementSpec::dict({{"image", Dtype::f32, shape}, {"label", Dtype::i64, {}}});
  return Dataset::from_tensor_slices(Sample(Tensor::of(numbers)))
      .map(
          [shape](const Sample& in) {
            const auto number = in.tensor().item<std::int64_t>();
            const std::vector<float> values(shape_values(shape), static_cast<float>(number));
            return Sample::dict({{"image", Tensor::of(std::span<const float>(values), shape)},
                                 {"label", Tensor::scalar<std::int64_t>(number % 4)}});
          },
          {.name = "numbered", .spec = spec})
      .map(image::one_hot(4));
}

struct Row {
  std::vector<float> image;
  std::vector<float> label;
};
std::vector<Row> rows_of(const Dataset& dataset, std::uint32_t replicas = 1) {
  Loader loader(dataset, {.shares = Shares{replicas, 0, replicas}});
  std::vector<Row> rows;
  while (const auto step = loader.next_step())
    for (const Batch& share : *step)
      for (std::size_t i = 0; i < share.rows(); ++i) {
        const auto images = share.values<float>("image");
        const auto labels = share.values<float>("label");
        const std::size_t size = images.size() / share.rows();
        rows.push_back({{images.begin() + static_cast<std::ptrdiff_t>(i * size),
                         images.begin() + static_cast<std::ptrdiff_t>((i + 1) * size)},
                        {labels.begin() + static_cast<std::ptrdiff_t>(4 * i),
                         labels.begin() + static_cast<std::ptrdiff_t>(4 * i + 4)}});
      }
  return rows;
}

TEST(MixingTest, OneHotMarksTheClassAndRejectsUnknownOnes) {
  const auto rows = rows_of(numbered(8, {1, 1, 1}).batch(4));
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(rows[i].label[c], c == i % 4 ? 1 : 0);
  try {
    (void)Dataset::range(5).map(image::one_hot(3, "")).sample(4);
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("label 4 is not one of 3 classes"));
  }
}

TEST(MixingTest, MixupMixesImagesAndLabelsByTheSameShare) {
  const auto rows = rows_of(numbered(16, {2, 2, 3}).batch(8).map(image::mixup({.alpha = 1})));
  bool mixed = false;
  for (std::size_t i = 0; i < 16; ++i) {
    float sum = 0;
    for (const float value : rows[i].label) sum += value;
    EXPECT_NEAR(sum, 1, 1e-6F);
    for (const float value : rows[i].image) ASSERT_EQ(value, rows[i].image[0]);
    const std::size_t low = i / 8 * 8;
    EXPECT_GE(rows[i].image[0], static_cast<float>(low)) << "partners are in the same batch";
    EXPECT_LE(rows[i].image[0], static_cast<float>(low + 7));
    mixed = mixed || std::abs(rows[i].image[0] - static_cast<float>(i)) > 1e-3F;
    const float own = rows[i].label[i % 4];
    if (own < 1) {
      // image = own * i + (1 - own) * partner, and the partner is a whole number of another class
      const float partner =
          (rows[i].image[0] - own * static_cast<float>(i)) / std::max(1e-6F, 1 - own);
      if (own < 0.99F) {
        EXPECT_NEAR(partner, std::round(partner), 1e-2F);
      }
    }
  }
  EXPECT_TRUE(mixed);
}

TEST(MixingTest, CutmixPastesARectangleAndLabelsByItsArea) {
  for (const Shape& shape : {Shape{12, 10, 3}, Shape{3, 12, 10}}) {
    const auto rows = rows_of(numbered(16, shape).batch(16).map(image::cutmix({.alpha = 1})));
    for (std::size_t i = 0; i < 16; ++i) {
      std::size_t own = 0;
      for (const float value : rows[i].image) own += value == static_cast<float>(i) ? 1 : 0;
      const float kept = static_cast<float>(own) / static_cast<float>(rows[i].image.size());
      // A partner of the same class, or the image itself, adds to the same label.
      EXPECT_GE(rows[i].label[i % 4], kept - 1e-5F);
      float sum = 0;
      for (const float value : rows[i].label) sum += value;
      EXPECT_NEAR(sum, 1, 1e-5F);
    }
  }
}

TEST(MixingTest, MixedBatchesDoNotDependOnReplicas) {
  const auto dataset = numbered(21, {2, 2, 3}).shuffle({.seed = 3}).batch(8).map(image::mixup());
  const auto one = rows_of(dataset);
  for (const std::uint32_t replicas : {2U, 3U}) {
    const auto some = rows_of(dataset, replicas);
    ASSERT_EQ(some.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(some[i].image, one[i].image);
      EXPECT_EQ(some[i].label, one[i].label);
    }
  }
}

TEST(MixingTest, MixingNeedsBatchesOfFloats) {
  EXPECT_THROW((void)numbered(4, {2, 2, 3}).map(image::mixup()), ConfigError);
  EXPECT_THROW((void)Dataset::range(4).batch(2).map(image::mixup()), ConfigError);
  EXPECT_THROW((void)image::mixup({.alpha = 0}), ConfigError);
}

}  // namespace
}  // namespace penstock
