// Every image op against a plain reference, through the public API, on random sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/mix.h"
#include "op/image_step.h"
#include "op/op.h"
#include "penstock/image.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

struct Size {
  std::int64_t height;
  std::int64_t width;
};
constexpr Size kSizes[] = {{1, 1}, {1, 9}, {9, 1}, {2, 3}, {17, 33}, {40, 23}};

/// An image in doubles, for straightforward reference code.
struct Plain {
  std::int64_t height = 0;
  std::int64_t width = 0;
  int channels = 3;
  std::vector<double> values;
  Plain(std::int64_t h, std::int64_t w, int c)
      : height(h), width(w), channels(c), values(static_cast<std::size_t>(h * w * c)) {}
  double& at(std::int64_t y, std::int64_t x, int c) {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
  [[nodiscard]] double at(std::int64_t y, std::int64_t x, int c) const {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
};

Plain random_image(std::int64_t height, std::int64_t width, int channels, std::uint64_t seed = 1) {
  Plain image(height, width, channels);
  for (std::size_t i = 0; i < image.values.size(); ++i)
    image.values[i] = static_cast<double>(mix(seed * 1000003 + i) % 256);
  return image;
}

Tensor bytes_of(const Plain& image) {
  std::vector<std::uint8_t> values;
  for (const double value : image.values) values.push_back(static_cast<std::uint8_t>(value));
  return Tensor::of(std::span<const std::uint8_t>(values),
                    {image.height, image.width, image.channels});
}
Tensor floats_of(const Plain& image) {
  std::vector<float> values;
  for (const double value : image.values) values.push_back(static_cast<float>(value / 255));
  return Tensor::of(std::span<const float>(values), {image.height, image.width, image.channels});
}

Tensor run(const Tensor& image, const image::Chain& chain) {
  return Dataset::from_tensors(Sample(image)).map(chain).sample(0).tensor();
}

Plain plain_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  Plain image(shape[0], shape[1], static_cast<int>(shape[2]));
  for (std::size_t i = 0; i < image.values.size(); ++i)
    image.values[i] = tensor.dtype() == Dtype::u8 ? tensor.values<std::uint8_t>()[i]
                                                  : static_cast<double>(tensor.values<float>()[i]);
  return image;
}

void expect_near(const Plain& got, const Plain& wanted, double tolerance, const char* what) {
  ASSERT_EQ(got.height, wanted.height) << what;
  ASSERT_EQ(got.width, wanted.width) << what;
  ASSERT_EQ(got.channels, wanted.channels) << what;
  for (std::size_t i = 0; i < got.values.size(); ++i)
    ASSERT_NEAR(got.values[i], wanted.values[i], tolerance) << what << ", value " << i;
}

/// Calls `body` for images of every size and number of channels.
void for_images(const std::function<void(const Plain&)>& body) {
  for (const Size& size : kSizes)
    for (const int channels : {1, 3, 4}) body(random_image(size.height, size.width, channels));
}

double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  if (x < 2) return -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2;
  return 0;
}

/// Pillow's convolution, without its rounding between the two directions.
Plain reference_resize(const Plain& in, std::int64_t height, std::int64_t width,
                       const std::string& filter, bool antialias) {
  const auto weights = [&](std::int64_t size, std::int64_t result, std::int64_t pixel) {
    const double scale = static_cast<double>(size) / static_cast<double>(result);
    const double center = (static_cast<double>(pixel) + 0.5) * scale;
    std::vector<double> all(static_cast<std::size_t>(size), 0);
    if (filter == "nearest") {
      all[static_cast<std::size_t>(std::min(size - 1, static_cast<std::int64_t>(center)))] = 1;
      return all;
    }
    const double stretch = antialias || filter == "area" ? std::max(1.0, scale) : 1.0;
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const double x = (static_cast<double>(i) + 0.5 - center) / stretch;
      double weight = 0;
      if (filter == "bilinear") weight = std::max(0.0, 1 - std::abs(x));
      if (filter == "bicubic") weight = cubic(x);
      if (filter == "area") weight = x > -0.5 && x <= 0.5 ? 1 : 0;
      all[static_cast<std::size_t>(i)] = weight;
      sum += weight;
    }
    for (double& weight : all) weight /= sum;
    return all;
  };
  Plain half(in.height, width, in.channels);
  for (std::int64_t x = 0; x < width; ++x) {
    const auto w = weights(in.width, width, x);
    for (std::int64_t y = 0; y < in.height; ++y)
      for (int c = 0; c < in.channels; ++c)
        for (std::int64_t k = 0; k < in.width; ++k)
          half.at(y, x, c) += w[static_cast<std::size_t>(k)] * in.at(y, k, c);
  }
  Plain out(height, width, in.channels);
  for (std::int64_t y = 0; y < height; ++y) {
    const auto w = weights(in.height, height, y);
    for (std::int64_t x = 0; x < width; ++x)
      for (int c = 0; c < in.channels; ++c)
        for (std::int64_t k = 0; k < in.height; ++k)
          out.at(y, x, c) += w[static_cast<std::size_t>(k)] * half.at(k, x, c);
  }
  return out;
}

TEST(ImageOpsTest, ResizeEqualsTheConvolutionOfPillow) {
  constexpr Size kTargets[] = {{1, 1}, {7, 5}, {64, 3}, {20, 50}};
  for (const char* const filter : {"nearest", "bilinear", "bicubic", "area"})
    for (const bool antialias : {true, false})
      for (const Size& target : kTargets)
        for_images([&](const Plain& in) {
          const image::ResizeOptions options{filter, antialias};
          const Plain wanted = reference_resize(in, target.height, target.width, filter, antialias);
          const Plain floats = plain_of(
              run(floats_of(in), image::of().resize(target.height, target.width, options)));
          Plain scaled = wanted;
          for (double& value : scaled.values) value /= 255;
          ASSERT_NO_FATAL_FAILURE(expect_near(floats, scaled, 2e-6, filter));
          // Bytes through fixed-point numbers: a twentieth of a level.
          const Plain bytes = plain_of(run(
              bytes_of(in), image::of().resize(target.height, target.width, options).to_float()));
          ASSERT_NO_FATAL_FAILURE(expect_near(bytes, scaled, 0.05 / 255, filter));
        });
}

TEST(ImageOpsTest, StepsInOneChainGiveTheSamePixelsAsSeparateChains) {
  // Crops and mirrors before and after a resize, in one pass and in several.
  const Plain in = random_image(37, 52, 3);
  const auto chain = image::of()
                         .crop(3, 5, 30, 40)
                         .random_flip({.horizontal = true, .vertical = true, .chance = 1})
                         .resize(21, 19)
                         .crop(2, 3, 15, 11)
                         .random_flip({.chance = 1})
                         .to_float();
  Tensor tensor = floats_of(in);
  tensor = run(tensor, image::of().crop(3, 5, 30, 40));
  tensor =
      run(tensor, image::of().random_flip({.horizontal = true, .vertical = true, .chance = 1}));
  tensor = run(tensor, image::of().resize(21, 19));
  tensor = run(tensor, image::of().crop(2, 3, 15, 11));
  tensor = run(tensor, image::of().random_flip({.chance = 1}));
  expect_near(plain_of(run(bytes_of(in), chain)), plain_of(tensor), 0.05 / 255, "one pass");
}

TEST(ImageOpsTest, CropsReturnTheirRegion) {
  const Plain in = random_image(9, 12, 3);
  const Plain part = plain_of(run(bytes_of(in), image::of().crop(2, 3, 4, 5)));
  const Plain middle = plain_of(run(bytes_of(in), image::of().center_crop(6, 5)));
  for (std::int64_t y = 0; y < 4; ++y)
    for (std::int64_t x = 0; x < 5; ++x) EXPECT_EQ(part.at(y, x, 1), in.at(y + 2, x + 3, 1));
  for (std::int64_t y = 0; y < 6; ++y)
    for (std::int64_t x = 0; x < 5; ++x) EXPECT_EQ(middle.at(y, x, 2), in.at(y + 1, x + 3, 2));
}

TEST(ImageOpsTest, AFlipIsDrawnForEachAxisWithItsChance) {
  const Plain in = random_image(4, 5, 1);
  const auto mirrored = [&](const Plain& got, bool x, bool y) {
    for (std::int64_t row = 0; row < 4; ++row)
      for (std::int64_t column = 0; column < 5; ++column)
        if (got.at(row, column, 0) != in.at(y ? 3 - row : row, x ? 4 - column : column, 0))
          return false;
    return true;
  };
  int flips_of_one = 0;
  int flips_of_both[2][2] = {};
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Plain one = plain_of(run(bytes_of(in), image::of().random_flip().seed(seed)));
    ASSERT_NE(mirrored(one, true, false), mirrored(one, false, false));
    flips_of_one += mirrored(one, true, false) ? 1 : 0;
    const Plain both =
        plain_of(run(bytes_of(in), image::of().random_flip({.vertical = true}).seed(seed)));
    for (const bool x : {false, true})
      for (const bool y : {false, true}) flips_of_both[x][y] += mirrored(both, x, y) ? 1 : 0;
  }
  EXPECT_NEAR(flips_of_one, 200, 50);
  for (const auto& of_x : flips_of_both)
    for (const int count : of_x) EXPECT_NEAR(count, 100, 40);
}

TEST(ImageOpsTest, RandomCropsReachEveryPosition) {
  const Plain in = random_image(4, 5, 1);
  std::vector<int> seen(6);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Plain part = plain_of(run(bytes_of(in), image::of().random_crop(3, 3).seed(seed)));
    int found = -1;
    for (std::int64_t y = 0; y < 2; ++y)
      for (std::int64_t x = 0; x < 3; ++x) {
        bool same = true;
        for (std::int64_t i = 0; i < 9; ++i)
          same = same && part.at(i / 3, i % 3, 0) == in.at(y + i / 3, x + i % 3, 0);
        if (same) found = static_cast<int>(3 * y + x);
      }
    ASSERT_GE(found, 0) << "no part of the image";
    ++seen[static_cast<std::size_t>(found)];
  }
  for (const int count : seen) EXPECT_GT(count, 10);
}

TEST(ImageOpsTest, RandomResizedCropHasItsSizeForAnyImage) {
  for_images([](const Plain& in) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Plain out =
          plain_of(run(bytes_of(in), image::of().random_resized_crop(6, 7).seed(seed)));
      ASSERT_EQ(out.height, 6);
      ASSERT_EQ(out.width, 7);
    }
  });
}

TEST(ImageOpsTest, PaddingSurroundsTheImage) {
  for_images([](const Plain& in) {
    const Plain out = plain_of(run(
        bytes_of(in), image::of().pad({.top = 2, .bottom = 1, .left = 3, .right = 4, .value = 1})));
    ASSERT_EQ(out.height, in.height + 3);
    ASSERT_EQ(out.width, in.width + 7);
    for (std::int64_t y = 0; y < out.height; ++y)
      for (std::int64_t x = 0; x < out.width; ++x) {
        const bool inside = y >= 2 && y < 2 + in.height && x >= 3 && x < 3 + in.width;
        ASSERT_EQ(out.at(y, x, 0), inside ? in.at(y - 2, x - 3, 0) : 255);
      }
  });
}

TEST(ImageOpsTest, QuarterTurnsAreCounterclockwise) {
  for_images([](const Plain& in) {
    const Plain out = plain_of(run(bytes_of(in), image::of().rotate90()));
    ASSERT_EQ(out.height, in.width);
    ASSERT_EQ(out.width, in.height);
    for (std::int64_t y = 0; y < out.height; ++y)
      for (std::int64_t x = 0; x < out.width; ++x)
        ASSERT_EQ(out.at(y, x, 0), in.at(x, in.width - 1 - y, 0));
    const Plain back = plain_of(run(bytes_of(in), image::of().rotate90().rotate90(2).rotate90(-3)));
    ASSERT_EQ(back.values, in.values);
  });
}

TEST(ImageOpsTest, BrightnessAddsTheSameToBytesAndFloats) {
  const Plain in = random_image(8, 8, 3);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto chain = image::of().random_brightness(0.2).seed(seed);
    const Plain bytes = plain_of(run(bytes_of(in), chain));
    const Plain floats = plain_of(run(floats_of(in), chain));
    double delta = 2;
    for (std::size_t i = 0; i < in.values.size(); ++i) {
      ASSERT_NEAR(bytes.values[i], floats.values[i] * 255, 0.501);
      const bool inner = floats.values[i] > 0 && floats.values[i] < 1;
      if (inner && delta == 2) delta = floats.values[i] - in.values[i] / 255;
      if (inner) {
        ASSERT_NEAR(floats.values[i] - in.values[i] / 255, delta, 1e-5);
      }
    }
    EXPECT_LE(std::abs(delta), 0.2001);
  }
}

TEST(ImageOpsTest, ContrastMovesValuesAwayFromTheMeanGray) {
  for_images([](const Plain& in) {
    double mean = 0;
    for (std::int64_t y = 0; y < in.height; ++y)
      for (std::int64_t x = 0; x < in.width; ++x)
        mean += in.channels == 1
                    ? in.at(y, x, 0)
                    : 0.299 * in.at(y, x, 0) + 0.587 * in.at(y, x, 1) + 0.114 * in.at(y, x, 2);
    mean /= static_cast<double>(in.height * in.width);
    Plain wanted = in;
    for (std::int64_t y = 0; y < in.height; ++y)
      for (std::int64_t x = 0; x < in.width; ++x)
        for (int c = 0; c < std::min(3, in.channels); ++c)
          wanted.at(y, x, c) = std::clamp(mean + 1.5 * (in.at(y, x, c) - mean), 0.0, 255.0);
    expect_near(plain_of(run(bytes_of(in), image::of().random_contrast(1.5, 1.5))), wanted, 0.51,
                "contrast");
  });
}

TEST(ImageOpsTest, SaturationMovesColorsAwayFromGray) {
  const Plain in = random_image(6, 7, 3);
  Plain wanted = in;
  for (std::int64_t y = 0; y < in.height; ++y)
    for (std::int64_t x = 0; x < in.width; ++x) {
      const double gray = 0.299 * in.at(y, x, 0) + 0.587 * in.at(y, x, 1) + 0.114 * in.at(y, x, 2);
      for (int c = 0; c < 3; ++c)
        wanted.at(y, x, c) = std::clamp(gray + 0.4 * (in.at(y, x, c) - gray), 0.0, 255.0);
    }
  expect_near(plain_of(run(bytes_of(in), image::of().random_saturation(0.4, 0.4))), wanted, 0.51,
              "saturation");
  const Plain gray = plain_of(run(bytes_of(in), image::of().grayscale()));
  for (std::int64_t x = 0; x < in.width; ++x) EXPECT_EQ(gray.at(0, x, 0), gray.at(0, x, 2));
}

TEST(ImageOpsTest, HueKeepsTheLargestAndSmallestValueOfAPixel) {
  const Plain in = random_image(6, 7, 3);
  const Plain out = plain_of(run(bytes_of(in), image::of().random_hue(0.4).seed(3)));
  bool changed = false;
  for (std::int64_t y = 0; y < in.height; ++y)
    for (std::int64_t x = 0; x < in.width; ++x) {
      const auto limits = [&](const Plain& image) {
        return std::minmax({image.at(y, x, 0), image.at(y, x, 1), image.at(y, x, 2)});
      };
      EXPECT_NEAR(limits(in).first, limits(out).first, 1);
      EXPECT_NEAR(limits(in).second, limits(out).second, 1);
      changed = changed || in.at(y, x, 0) != out.at(y, x, 0);
    }
  EXPECT_TRUE(changed);
}

TEST(ImageOpsTest, BlurIsAGaussianWithMirroredEdges) {
  for_images([](const Plain& in) {
    const double sigma = 1.3;
    const int reach = 4;
    const auto mirrored = [](std::int64_t at, std::int64_t size) {
      while (size > 1 && (at < 0 || at >= size)) at = at < 0 ? -at : 2 * (size - 1) - at;
      return size == 1 ? 0 : at;
    };
    Plain wanted(in.height, in.width, in.channels);
    for (std::int64_t y = 0; y < in.height; ++y)
      for (std::int64_t x = 0; x < in.width; ++x)
        for (int c = 0; c < in.channels; ++c) {
          double sum = 0;
          double weights = 0;
          for (int dy = -reach; dy <= reach; ++dy)
            for (int dx = -reach; dx <= reach; ++dx) {
              const double weight = std::exp(-(dx * dx + dy * dy) / (2 * sigma * sigma));
              sum += weight * in.at(mirrored(y + dy, in.height), mirrored(x + dx, in.width), c);
              weights += weight;
            }
          wanted.at(y, x, c) = sum / weights;
        }
    expect_near(plain_of(run(bytes_of(in), image::of().gaussian_blur({.sigma = {sigma, sigma}}))),
                wanted, 0.51, "blur");
  });
}

TEST(ImageOpsTest, ErasingPaintsOneRectangle) {
  const Plain in = random_image(20, 20, 3);
  Plain white = in;
  for (double& value : white.values) value = std::min(value, 250.0);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Plain out = plain_of(
        run(bytes_of(white), image::of().random_erasing({.chance = 1, .value = 1}).seed(seed)));
    std::int64_t top = 20;
    std::int64_t bottom = -1;
    std::int64_t left = 20;
    std::int64_t right = -1;
    std::int64_t painted = 0;
    for (std::int64_t y = 0; y < 20; ++y)
      for (std::int64_t x = 0; x < 20; ++x) {
        if (out.at(y, x, 0) != 255) {
          ASSERT_EQ(out.at(y, x, 0), white.at(y, x, 0));
          continue;
        }
        top = std::min(top, y);
        bottom = std::max(bottom, y);
        left = std::min(left, x);
        right = std::max(right, x);
        ++painted;
      }
    ASSERT_GT(painted, 0);
    EXPECT_EQ(painted, (bottom - top + 1) * (right - left + 1));
  }
}

TEST(ImageOpsTest, NormalizeAndLayoutsAndDtypes) {
  const Plain in = random_image(3, 5, 3);
  const Tensor planes =
      run(bytes_of(in), image::of().normalize({0.5, 0.4, 0.3}, {0.2, 0.25, 0.5}).channels_first());
  ASSERT_EQ(planes.shape(), (Shape{3, 3, 5}));
  const double mean[] = {0.5, 0.4, 0.3};
  const double deviation[] = {0.2, 0.25, 0.5};
  for (int c = 0; c < 3; ++c)
    for (std::int64_t i = 0; i < 15; ++i)
      EXPECT_NEAR(static_cast<double>(planes.values<float>()[static_cast<std::size_t>(15 * c + i)]),
                  (in.at(i / 5, i % 5, c) / 255 - mean[c]) / deviation[c], 1e-5);
  const Tensor halves = run(bytes_of(in), image::of().to_float(Dtype::bf16));
  EXPECT_EQ(halves.dtype(), Dtype::bf16);
  EXPECT_NEAR(static_cast<double>(static_cast<float>(halves.values<BFloat16>()[7])),
              in.values[7] / 255, 0.005);
  EXPECT_EQ(plain_of(run(floats_of(in), image::of().to_bytes())).values, in.values);
}

TEST(ImageOpsTest, JitterStaysInRangeAndDependsOnTheSeedAlone) {
  const Plain in = random_image(9, 9, 3);
  const auto chain = [](std::uint64_t seed) {
    return image::of()
        .color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1})
        .seed(seed);
  };
  const Plain once = plain_of(run(bytes_of(in), chain(5)));
  EXPECT_EQ(once.values, plain_of(run(bytes_of(in), chain(5))).values);
  EXPECT_NE(once.values, plain_of(run(bytes_of(in), chain(6))).values);
}

void expect_refused(const std::function<void()>& body, const std::string& words) {
  try {
    body();
    FAIL() << "not rejected: " << words;
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(ImageOpsTest, WrongParametersThrowWhenTheChainIsBuilt) {
  expect_refused([] { (void)image::of().resize(0, 5); }, "height must be positive");
  expect_refused([] { (void)image::of().resize(5, 5, {.filter = "cubic"}); }, "bicubic or area");
  expect_refused([] { (void)image::of().random_brightness(51); }, "0.2 is 51 of 255");
  expect_refused([] { (void)image::of().random_brightness(0); }, "delta");
  expect_refused([] { (void)image::of().random_contrast(1, 1); }, "changes nothing");
  expect_refused([] { (void)image::of().random_hue(0.7); }, "color circle");
  expect_refused([] { (void)image::of().normalize({123.7}, {58.4}); }, "divide by 255");
  expect_refused([] { (void)image::of().normalize({0.5}, {0}); }, "std must be positive");
  expect_refused([] { (void)image::of().random_flip({.horizontal = false}); }, "would do nothing");
  expect_refused([] { (void)image::of().pad({}); }, "would do nothing");
  expect_refused([] { (void)image::of().rotate90(4); }, "would do nothing");
  expect_refused([] { (void)image::of().color_jitter({}); }, "would do nothing");
  expect_refused([] { (void)image::decode({.channels = 2}); }, "channels must be");
  expect_refused([] { (void)image::decode({.pixels_max = 0}); }, "pixels_max must be positive");
  expect_refused([] { (void)image::decode({.side_max = 0}); }, "side_max must be positive");
  expect_refused([] { (void)image::decode({.bytes_max = 0}); }, "bytes_max must be positive");
  for (const double seconds : {0.0, -1.0, 1e9, std::nan("")})
    expect_refused([&] { (void)image::decode({.time_max = seconds}); }, "time_max");
  expect_refused([] { (void)image::of().step("resise", "{}"); }, "no image op \"resise\"");
  expect_refused([] { (void)image::of().step("resize", R"({"hight": 3})"); }, "height is missing");
  expect_refused([] { (void)image::of().step("rotate90", R"({"k": 3})"); }, "it takes turns");
}

TEST(ImageOpsTest, IncompatibleOpsThrowWhenTheGraphIsBuilt) {
  const Dataset bytes = Dataset::from_tensors(Sample(Tensor::bytes("x")));
  const Dataset pixels = Dataset::from_tensors(Sample(bytes_of(random_image(8, 8, 3))));
  const Dataset gray = Dataset::from_tensors(Sample(bytes_of(random_image(8, 8, 1))));
  expect_refused([&] { (void)bytes.map(image::of().resize(4, 4)); }, "start the chain with decode");
  expect_refused([&] { (void)pixels.map(image::decode()); }, "decoded already");
  expect_refused([&] { (void)pixels.map(image::of().normalize().random_brightness(0.1)); },
                 "before normalize");
  expect_refused([&] { (void)pixels.map(image::of().channels_first().resize(4, 4)); },
                 "before channels_first");
  expect_refused([&] { (void)pixels.map(image::of().crop(0, 0, 9, 3)); }, "does not fit");
  expect_refused([&] { (void)gray.map(image::of().random_hue(0.1)); }, "have no color");
  expect_refused([&] { (void)pixels.map(image::of().random_brightness(0.001)); },
                 "changes no 8-bit value");
  expect_refused([&] { (void)Dataset::range(3).map(image::of()); }, "image");
}

TEST(ImageOpsTest, ImagesOfUnplannedSizesFail) {
  const Dataset images =
      Dataset::from_index(
          2,
          [](std::uint64_t i) {
            return Sample(bytes_of(random_image(4 + 4 * static_cast<std::int64_t>(i), 6, 3)));
          },
          {.spec = ElementSpec::single(Dtype::u8, {kUnknown, 6, 3})})
          .map(image::of().crop(0, 0, 5, 5));
  EXPECT_EQ(images.sample(1).tensor().shape(), (Shape{5, 5, 3}));
  try {
    (void)images.sample(0);
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not fit into an image of 4 x 6"));
  }
}

/// Every step with the arguments that have no default, by the C++ method and by its word.
struct StepCall {
  image::Chain chain;
  std::string arguments;
};
std::map<std::string, StepCall> calls_with_defaults() {
  const image::Chain none = image::of();
  return {{"decode", {image::decode(), "{}"}},
          {"resize", {none.resize(3, 4), R"({"height": 3, "width": 4})"}},
          {"resize_short", {none.resize_short(5), R"({"size": 5})"}},
          {"crop", {none.crop(1, 2, 3, 4), R"({"y": 1, "x": 2, "height": 3, "width": 4})"}},
          {"center_crop", {none.center_crop(3, 4), R"({"height": 3, "width": 4})"}},
          {"pad", {none.pad({.top = 1}), R"({"top": 1})"}},
          {"random_crop", {none.random_crop(3, 4), R"({"height": 3, "width": 4})"}},
          {"random_resized_crop", {none.random_resized_crop(3, 4), R"({"height": 3, "width": 4})"}},
          {"random_flip", {none.random_flip(), "{}"}},
          {"rotate90", {none.rotate90(), "{}"}},
          {"random_rotate90", {none.random_rotate90(), "{}"}},
          {"random_brightness", {none.random_brightness(0.5), R"({"delta": 0.5})"}},
          {"random_contrast", {none.random_contrast(0.5, 2), R"({"low": 0.5, "high": 2.0})"}},
          {"random_saturation", {none.random_saturation(0.5, 2), R"({"low": 0.5, "high": 2.0})"}},
          {"random_hue", {none.random_hue(0.25), R"({"delta": 0.25})"}},
          {"grayscale", {none.grayscale(), "{}"}},
          {"color_jitter", {none.color_jitter({.hue = 0.25}), R"({"hue": 0.25})"}},
          {"gaussian_blur", {none.gaussian_blur(), "{}"}},
          {"random_erasing", {none.random_erasing(), "{}"}},
          {"normalize", {none.normalize(), "{}"}},
          {"to_float", {none.to_float(), "{}"}},
          {"to_bytes", {none.to_bytes(), "{}"}},
          {"channels_first", {none.channels_first(), "{}"}}};
}

TEST(ImageOpsTest, EveryStepHasACppMethodWithTheDefaultsOfItsParameters) {
  const auto arguments = [](const OpCall& call) { return call.op()->arguments(); };
  auto calls = calls_with_defaults();
  for (const StepKind& kind : image_steps()) {
    const auto found = calls.find(kind.word);
    ASSERT_NE(found, calls.end()) << kind.word << " has no row in this test";
    const StepCall& call = found->second;
    EXPECT_EQ(arguments(call.chain), arguments(image::of().step(kind.word, call.arguments)))
        << kind.word;
    calls.erase(found);
  }
  EXPECT_TRUE(calls.empty());
}

TEST(ImageOpsTest, AChainIsRecreatedFromItsArguments) {
  const OpCall chain =
      image::decode({.field = "photo"}).resize(8, 8).random_flip({.chance = 0.25}).seed(7);
  const Json arguments = chain.op()->arguments();
  EXPECT_EQ(arguments.at("field"), "photo");
  EXPECT_EQ(arguments.at("seed"), 7);
  EXPECT_EQ(arguments.at("steps").size(), 3U);
  const auto parsed = make_image_chain(arguments);
  EXPECT_EQ(parsed->arguments(), arguments);
  EXPECT_EQ(parsed->describe(), chain.op()->describe());
}

}  // namespace
}  // namespace penstock
