// Encoded files through chains, against the codec and plain arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codec/images_for_tests.h"
#include "penstock/image.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

Dataset file_of(const made::Values& bytes) {
  return Dataset::from_tensors(
      Sample(Tensor::bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()})));
}
Tensor run(const made::Values& file, const image::Chain& chain) {
  return file_of(file).map(chain).sample(0).tensor();
}
std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  const auto values = tensor.values<std::uint8_t>();
  return {values.begin(), values.end()};
}

TEST(DecodeTest, AChainOfDecodeAloneEqualsTheCodec) {
  const auto photo = made::jpeg({.width = 37, .height = 23});
  const auto png = made::png({.width = 19, .height = 31});
  EXPECT_EQ(run(photo, image::decode()).shape(), (Shape{23, 37, 3}));
  EXPECT_EQ(bytes_of(run(photo, image::decode())), made::jpeg_plainly(photo, JCS_RGB));
  EXPECT_EQ(bytes_of(run(png, image::decode())), made::png_plainly(png, false));
  EXPECT_EQ(bytes_of(run(photo, image::decode({.channels = 1}))),
            made::jpeg_plainly(photo, JCS_GRAYSCALE));
}

TEST(DecodeTest, ACropIsThatPartOfAFullDecode) {
  const auto photo = made::jpeg({.width = 61, .height = 47});
  const Tensor full = run(photo, image::decode());
  const Tensor part = run(photo, image::decode().crop(11, 17, 20, 30));
  for (std::int64_t y = 0; y < 20; ++y)
    for (std::int64_t i = 0; i < 90; ++i)
      ASSERT_EQ(part.values<std::uint8_t>()[static_cast<std::size_t>(y * 90 + i)],
                full.values<std::uint8_t>()[static_cast<std::size_t>((y + 11) * 61 * 3 + 51 + i)]);
}

TEST(DecodeTest, ResizingACropOfAFileIsResizingItsPixels) {
  for (const auto& file :
       {made::jpeg({.width = 61, .height = 47}), made::png({.width = 61, .height = 47})}) {
    const Tensor part = run(file, image::decode().crop(5, 9, 33, 41));
    const Tensor wanted = Dataset::from_tensors(Sample(part))
                              .map(image::of().resize(16, 12).to_float())
                              .sample(0)
                              .tensor();
    const Tensor got = run(file, image::decode().crop(5, 9, 33, 41).resize(16, 12).to_float());
    for (std::size_t i = 0; i < wanted.values<float>().size(); ++i)
      ASSERT_EQ(got.values<float>()[i], wanted.values<float>()[i]) << i;
  }
}

TEST(DecodeTest, SixteenBitsAreKeptOnRequestAndEightBitsScaled) {
  const auto wide = made::png({.width = 9, .height = 7, .bits = 16});
  const auto narrow = made::png({.width = 9, .height = 7});
  EXPECT_EQ(run(wide, image::decode()).dtype(), Dtype::u8);
  const Tensor kept = run(wide, image::decode({.keep_16_bit = true}));
  ASSERT_EQ(kept.dtype(), Dtype::u16);
  const auto plain = made::png_plainly(wide, true);
  for (std::size_t i = 0; i < kept.values<std::uint16_t>().size(); ++i)
    ASSERT_EQ(kept.values<std::uint16_t>()[i], plain[2 * i] + 256 * plain[2 * i + 1]);
  const Tensor bright = run(narrow, image::decode({.keep_16_bit = true}));
  const auto bytes = made::png_plainly(narrow, false);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    ASSERT_EQ(bright.values<std::uint16_t>()[i], 257 * bytes[i]);
  // The same through a resize, as floats.
  const Tensor small = run(
      wide, image::decode({.keep_16_bit = true}).resize(3, 3, {.filter = "nearest"}).to_float());
  EXPECT_NEAR(small.values<float>()[0], kept.values<std::uint16_t>()[(1 * 9 + 1) * 3] / 65535.0F,
              1e-6F);
}

TEST(DecodeTest, FastScaleIsNearTheFullResize) {
  made::Values pixels;
  for (int y = 0; y < 200; ++y)
    for (int x = 0; x < 300; ++x)
      for (int c = 0; c < 3; ++c)
        pixels.push_back(
            static_cast<std::uint8_t>(128 + 100 * std::sin(0.03 * x + c) * std::cos(0.04 * y)));
  const auto photo = made::jpeg({.width = 300, .height = 200}, pixels);
  const Tensor full = run(photo, image::decode().resize(25, 30).to_float());
  const Tensor fast = run(photo, image::decode({.fast_scale = true}).resize(25, 30).to_float());
  for (std::size_t i = 0; i < full.values<float>().size(); ++i)
    ASSERT_NEAR(fast.values<float>()[i], full.values<float>()[i], 0.08F);
}

void expect_fails(const made::Values& file, const std::string& words) {
  try {
    (void)run(file, image::decode().resize(4, 4));
    FAIL() << "not rejected: " << words;
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(DecodeTest, AFileThatIsNotAnImageFailsItsSample) {
  const auto png = made::png({.width = 40, .height = 40});
  expect_fails({png.begin(), png.begin() + static_cast<std::ptrdiff_t>(png.size() / 2)}, "PNG");
  expect_fails({'h', 'e', 'l', 'l', 'o', ' ', 'w', 'o', 'r', 'l', 'd', '!'}, "sample 0");
  expect_fails({}, "sample 0");
  try {
    (void)run(png, image::decode({.pixels_max = 100}));
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("40 x 40"));
  }
}

TEST(DecodeTest, EveryLimitOfTheCodecCanBeSet) {
  const auto png = made::png({.width = 40, .height = 30});
  const auto refused = [&](const image::DecodeOptions& options) -> std::string {
    try {
      (void)run(png, image::decode(options));
    } catch (const SampleError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refused({.side_max = 39}), HasSubstr("more than the limit of 39 for one side"));
  EXPECT_EQ(refused({.side_max = 40}), "");
  EXPECT_THAT(refused({.bytes_max = 20}), HasSubstr("more than the limit of 20"));
  EXPECT_EQ(refused({.time_max = 100}), "");
}

}  // namespace
}  // namespace penstock
