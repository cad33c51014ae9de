#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "codec/image_write.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// A smooth image, which a JPEG keeps almost unchanged.
Tensor pixels(std::int64_t height, std::int64_t width, std::int64_t channels) {
  std::vector<std::uint8_t> values;
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        values.push_back(static_cast<std::uint8_t>(100 + y + 2 * x + 10 * c));
  return Tensor::of<std::uint8_t>(values, {height, width, channels});
}

Dataset images(std::int64_t channels) {
  const Tensor image = pixels(20, 30, channels);
  return Dataset::from_tensors(
      Sample::dict({{"image", image}, {"label", Tensor::scalar<std::int64_t>(7)}}));
}

int largest_difference(const Tensor& a, const Tensor& b) {
  int most = 0;
  const auto left = a.values<std::uint8_t>();
  const auto right = b.values<std::uint8_t>();
  EXPECT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i)
    most = std::max(most, std::abs(int{left[i]} - int{right[i]}));
  return most;
}

TEST(EncodeImageTest, APngDecodesToTheSamePixels) {
  for (const std::int64_t channels : {1, 3, 4}) {
    const Sample encoded = images(channels).map(image::encode({.format = "png"})).sample(0);
    EXPECT_EQ(encoded["image"].dtype(), Dtype::bytes);
    EXPECT_EQ(encoded["label"].item<std::int64_t>(), 7);
    const Sample decoded = Dataset::from_tensors(encoded)
                               .map(image::decode({.channels = static_cast<int>(channels)}))
                               .sample(0);
    EXPECT_EQ(largest_difference(decoded["image"], pixels(20, 30, channels)), 0);
  }
}

TEST(EncodeImageTest, AJpegDecodesToAlmostTheSamePixels) {
  const Sample encoded = images(3).map(image::encode({.quality = 95})).sample(0);
  const Sample decoded = Dataset::from_tensors(encoded).map(image::decode()).sample(0);
  EXPECT_LE(largest_difference(decoded["image"], pixels(20, 30, 3)), 12);
  const Sample rough = images(3).map(image::encode({.quality = 5})).sample(0);
  EXPECT_LT(rough["image"].raw().size(), encoded["image"].raw().size());
}

TEST(EncodeImageTest, OtherFieldsAndOptionsAreRefused) {
  const auto refused = [](const char* text) { return ThrowsMessage<ConfigError>(HasSubstr(text)); };
  EXPECT_THAT([] { (void)images(3).map(image::encode({.format = "gif"})); }, refused("gif"));
  EXPECT_THAT([] { (void)images(3).map(image::encode({.quality = 0})); }, refused("1 to 100"));
  EXPECT_THAT([] { (void)images(4).map(image::encode()); }, refused("u8[20, 30, 4]"));
  EXPECT_THAT([] { (void)images(3).map(image::encode({.field = "label"})); }, refused("label"));
}

TEST(EncodeImageTest, AnImageWithoutPixelsFails) {
  EXPECT_FALSE(encode_jpeg({{}, 0, 10, 3}, 90).ok());
  EXPECT_FALSE(encode_png({{}, 10, 0, 3}).ok());
}

}  // namespace
}  // namespace penstock
