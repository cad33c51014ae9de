#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/codec.h"
#include "codec/image_properties_for_tests.h"
#include "codec/images_for_tests.h"

namespace penstock {
namespace {

using made::Values;
using testing::HasSubstr;

Values npy_with(const std::string& header, std::size_t value_bytes, unsigned version = 1) {
  Values file = {0x93, 'N', 'U', 'M', 'P', 'Y', static_cast<std::uint8_t>(version), 0};
  const std::string text = header + std::string(10, ' ') + "\n";
  for (unsigned i = 0; i < (version == 1 ? 2U : 4U); ++i)
    file.push_back(static_cast<std::uint8_t>(text.size() >> (8 * i)));
  file.insert(file.end(), text.begin(), text.end());
  const Values values = made::noise(value_bytes);
  file.insert(file.end(), values.begin(), values.end());
  return file;
}

Values npy(std::string_view descr, std::string_view shape, std::size_t value_bytes,
           unsigned version = 1) {
  return npy_with(
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape),
      value_bytes, version);
}

TEST(NpyTest, EveryDtypeIsDecodedAsStored) {
  const std::vector<std::pair<std::string, Dtype>> dtypes = {
      {"|b1", Dtype::boolean}, {"|u1", Dtype::u8},  {"<u2", Dtype::u16}, {"<u4", Dtype::u32},
      {"<u8", Dtype::u64},     {"|i1", Dtype::i8},  {"<i2", Dtype::i16}, {"<i4", Dtype::i32},
      {"<i8", Dtype::i64},     {"<f2", Dtype::f16}, {"<f4", Dtype::f32}, {"<f8", Dtype::f64}};
  for (const auto& [descr, dtype] : dtypes) {
    for (const unsigned version : {1U, 2U, 3U}) {
      for (std::size_t channels = 1; channels <= 4; ++channels) {
        const std::size_t bytes = 35 * channels * dtype_size(dtype);
        const Values file = npy(descr, fmt::format("(7, 5, {})", channels), bytes, version);
        const auto decoded = made::decode(file, {.channels = 0});
        ASSERT_EQ(decoded.message, "") << descr;
        EXPECT_EQ(decoded.pixels.dtype, dtype);
        EXPECT_EQ(decoded.pixels.height, 7);
        EXPECT_EQ(decoded.pixels.width, 5);
        EXPECT_EQ(decoded.pixels.channels, static_cast<int>(channels));
        EXPECT_EQ(decoded.values, made::noise(bytes));
      }
    }
  }
}

TEST(NpyTest, TwoDimensionsAreGray) {
  const Values file = npy("|u1", "(3, 4)", 12);
  EXPECT_EQ(made::decode(file, {.channels = 0}).values, made::noise(12));
  EXPECT_EQ(made::decode(file).pixels.channels, 3);
}

TEST(NpyTest, ARegionIsThatPartOfTheImage) {
  made::expect_regions_equal_crops(npy("<f4", "(6, 9, 3)", 648), {.channels = 0});
  made::expect_regions_equal_crops(npy("<u2", "(6, 9)", 108), {.channels = 3});
}

TEST(NpyTest, UnsupportedArraysFailWithARemedy) {
  const auto expect = [](const Values& file, std::string_view message, std::string_view remedy) {
    const auto decoded = made::decode(file, {.channels = 0});
    EXPECT_THAT(decoded.message, HasSubstr(message));
    EXPECT_THAT(decoded.remedy, HasSubstr(remedy));
  };
  expect(npy(">u2", "(2, 2)", 8), "high byte first", "newbyteorder");
  expect(npy_with("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", 4), "Fortran order",
         "ascontiguousarray");
  expect(npy("|O", "(2, 2)", 8), "Python objects", "np.asarray");
  expect(npy("<c8", "(2, 2)", 32), "dtype '<c8'", "floats");
  expect(npy("|u1", "(4,)", 4), "shape [4]", "height x width");
  expect(npy("|u1", "()", 1), "shape []", "height x width");
  expect(npy("|u1", "(2, 2, 5)", 20), "5 channels", "1 to 4");
  expect(npy("|u1", "(0, 2)", 0), "shape [0, 2]", "");
  expect(npy_with("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2, 2), }", 16),
         "records", "each field");
  EXPECT_THAT(made::decode(npy("<f4", "(2, 2, 3)", 48), {.channels = 1}).message,
              HasSubstr("cannot convert to 1 channels of f32 from 3"));
}

TEST(NpyTest, NoTruncationPasses) {
  made::expect_truncations_fail(npy("|u1", "(3, 4, 3)", 36));
  made::expect_truncations_fail(npy("<f4", "(3, 4)", 48, 2));
}

TEST(NpyTest, FlippedBytesDoNoHarm) {
  made::expect_flips_do_no_harm(npy("|u1", "(3, 4, 3)", 36), 4000);
  made::expect_flips_do_no_harm(npy("<f4", "(3, 4)", 48, 3), 2000);
}

TEST(NpyTest, HugeShapesAreRejectedBeforeMemoryIsAllocated) {
  EXPECT_THAT(made::decode(npy("<f8", "(2147483647, 2147483647, 4)", 9)).message,
              HasSubstr("the limit"));
  EXPECT_THAT(
      made::decode(npy("<f8", "(2147483647, 2147483647, 4)", 9), {.limits = made::kNoLimits})
          .message,
      HasSubstr("in the middle of its values"));
  EXPECT_NE(made::decode(npy("|u1", "(99999999999999999999999, 1)", 9)).message, "");
}

}  // namespace
}  // namespace penstock
