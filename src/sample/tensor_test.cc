#include "penstock/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/error.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ShapeTest, TextAndValuesFollowTheSizes) {
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text({3, kUnknown, 4}), "[3, ?, 4]");
  EXPECT_EQ(shape_values({}), 1U);
  EXPECT_EQ(shape_values({3, 0, 4}), 0U);
  EXPECT_EQ(shape_values({3, 5}), 15U);
  EXPECT_THROW(static_cast<void>(shape_values({3, kUnknown})), ConfigError);
  EXPECT_THROW(static_cast<void>(shape_values({1LL << 32, 1LL << 32})), ConfigError);
}

TEST(ShapeTest, AnUnknownSizeFitsAnyButNotAnotherRank) {
  EXPECT_TRUE(shape_fits({3, 4}, {3, kUnknown}));
  EXPECT_TRUE(shape_fits({}, {}));
  EXPECT_FALSE(shape_fits({3, 4}, {kUnknown}));
  EXPECT_FALSE(shape_fits({3, 4}, {kUnknown, 5}));
  EXPECT_FALSE(shape_fits({kUnknown}, {3}));
  EXPECT_FALSE(shape_known({3, kUnknown}));
  EXPECT_TRUE(shape_known({}));
}

TEST(TensorTest, HoldsACopyOfItsValues) {
  std::vector<std::int32_t> values{1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::of(std::span<const std::int32_t>(values), {2, 3});
  values.assign(6, 0);
  EXPECT_EQ(tensor.dtype(), Dtype::i32);
  EXPECT_THAT(tensor.shape(), ElementsAre(2, 3));
  EXPECT_THAT(tensor.values<std::int32_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Tensor::of(std::vector<float>{}).shape(), ElementsAre(0));
  EXPECT_EQ(Tensor::scalar(2.5).item<double>(), 2.5);
}

TEST(TensorTest, BytesAreOneValueOfAnyLength) {
  const std::string value("a\0b", 3);
  const Tensor tensor = Tensor::bytes(value, Dtype::string);
  EXPECT_EQ(tensor.text(), value);
  EXPECT_EQ(tensor.dtype(), Dtype::string);
  EXPECT_EQ(Tensor::bytes("").text(), "");
  EXPECT_FALSE(Tensor::bytes("").empty());
  EXPECT_THROW(Tensor::copy(Dtype::bytes, {1}, {}), ConfigError);
}

TEST(TensorTest, BytesThatDoNotFillTheShapeThrowWithBothSizes) {
  const std::vector<std::int32_t> values{1, 2, 3};
  EXPECT_THAT(
      [&] { Tensor::of(std::span<const std::int32_t>(values), {2, 2}); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("i32[2, 2]"), HasSubstr("16"), HasSubstr("12"))));
}

TEST(TensorTest, AShapeWhoseSizeOverflowsThrows) {
  // 2^61 values of 8 bytes are 0 bytes when counted in 64 bits.
  EXPECT_THROW(Tensor::copy(Dtype::f64, {1LL << 61}, {}), ConfigError);
}

TEST(TensorTest, AccessWithAnotherDtypeOrShapeNamesBoth) {
  const Tensor tensor = Tensor::of(std::vector<float>{1, 2});
  EXPECT_THAT([&] { static_cast<void>(tensor.values<double>()); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("f64"), HasSubstr("f32"))));
  EXPECT_THAT([&] { static_cast<void>(tensor.item<float>()); },
              ThrowsMessage<ConfigError>(HasSubstr("[2]")));
  EXPECT_THROW(static_cast<void>(Tensor().item<std::uint8_t>()), ConfigError);
}

TEST(TensorTest, AViewKeepsItsOwnerAliveAndReferencesItsBytes) {
  auto owner = std::make_shared<std::vector<std::int16_t>>(std::vector<std::int16_t>{7, 8});
  const std::weak_ptr<const void> alive = owner;
  Tensor tensor = Tensor::view(Dtype::i16, {2}, std::as_bytes(std::span(*owner)), owner);
  EXPECT_EQ(tensor.kept().raw().data(), tensor.raw().data());
  owner.reset();
  EXPECT_THAT(tensor.values<std::int16_t>(), ElementsAre(7, 8));
  tensor = Tensor();
  EXPECT_TRUE(alive.expired());
}

TEST(TensorTest, KeptCopiesTensorsWithoutAnOwner) {
  std::vector<std::int16_t> values{7, 8};
  const Tensor kept =
      Tensor::view(Dtype::i16, {2}, std::as_bytes(std::span(values)), nullptr).kept();
  values.assign(2, 0);
  EXPECT_THAT(kept.values<std::int16_t>(), ElementsAre(7, 8));
}

}  // namespace
}  // namespace penstock
