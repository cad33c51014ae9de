#include "penstock/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/error.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

TEST(SpecTest, TextShowsTheStructureWithDtypesAndShapes) {
  EXPECT_EQ(ElementSpec::single(Dtype::f32, {kUnknown, 3}).text(), "f32[?, 3]");
  EXPECT_EQ(ElementSpec::dict({{"x", Dtype::f32, {128}}, {"id", Dtype::i64, {}}}).text(),
            "{id: i64[], x: f32[128]}");
  EXPECT_EQ(ElementSpec::unknown().text(), "unknown");
}

TEST(SpecTest, TheSpecOfASampleIsThatOfItsTensors) {
  const Sample sample = Sample::dict(
      {{"x", Tensor::of(std::vector<float>{1, 2})}, {"id", Tensor::scalar(std::int64_t{1})}});
  EXPECT_EQ(ElementSpec::of(sample),
            ElementSpec::dict({{"id", Dtype::i64, {}}, {"x", Dtype::f32, {2}}}));
}

TEST(SpecTest, ATupleNestsItsPartsAndRenamesTheirPaths) {
  const ElementSpec spec = ElementSpec::tuple(
      {ElementSpec::single(Dtype::i64), ElementSpec::dict({{"x", Dtype::u8, {4}}})});
  EXPECT_EQ(spec.text(), "(i64[], {x: u8[4]})");
  EXPECT_THAT(spec.find("0"), Optional(0U));
  EXPECT_THAT(spec.find("1/x"), Optional(1U));
  EXPECT_EQ(spec.find("x"), std::nullopt);
  EXPECT_FALSE(ElementSpec::tuple({spec, ElementSpec::unknown()}).known);
}

TEST(SpecTest, ANameWithASlashIsOneKey) {
  const ElementSpec spec =
      ElementSpec::dict({{"image/height", Dtype::i64, {}}, {"image/encoded", Dtype::bytes, {}}});
  EXPECT_EQ(spec.text(), "{image/encoded: bytes[], image/height: i64[]}");
  EXPECT_EQ(spec.structure.paths(), (std::vector<std::string>{"image/encoded", "image/height"}));
  EXPECT_THAT(spec.find("image/height"), Optional(1U));
}

TEST(SpecTest, DictRejectsInvalidNames) {
  EXPECT_THROW(ElementSpec::dict({{"", Dtype::u8, {}}}), ConfigError);
  EXPECT_THROW(ElementSpec::dict({{"a", Dtype::u8, {}}, {"a", Dtype::i64, {}}}), ConfigError);
}

TEST(SpecTest, DifferenceNamesTheFieldAndBothSides) {
  const ElementSpec spec =
      ElementSpec::dict({{"id", Dtype::i64, {}}, {"x", Dtype::f32, {kUnknown, 2}}});
  const auto with_x = [](Tensor x) {
    return Sample::dict({{"id", Tensor::scalar(std::int64_t{1})}, {"x", std::move(x)}});
  };
  const std::vector<float> six(6);
  EXPECT_EQ(spec.difference(with_x(Tensor::of(std::span<const float>(six), {3, 2}))), std::nullopt);
  EXPECT_THAT(spec.difference(with_x(Tensor::of(std::span<const float>(six), {2, 3}))),
              Optional(AllOf(HasSubstr("\"x\""), HasSubstr("f32[2, 3]"), HasSubstr("f32[?, 2]"))));
  EXPECT_THAT(spec.difference(with_x(Tensor::of(std::vector<double>(2)))),
              Optional(AllOf(HasSubstr("\"x\""), HasSubstr("f64[2]"))));
  EXPECT_THAT(spec.difference(Tensor::scalar(1.0F)),
              Optional(AllOf(HasSubstr("f32[]"), HasSubstr("{id: i64[], x: f32[?, 2]}"))));
}

TEST(SpecTest, ASampleWithoutTensorsDiffersFromEverySpec) {
  EXPECT_TRUE(ElementSpec::single(Dtype::u8).difference(Sample()));
  EXPECT_TRUE(ElementSpec::single(Dtype::u8).difference(Tensor()));
}

}  // namespace
}  // namespace penstock
