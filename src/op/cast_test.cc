#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "op/op.h"
#include "penstock/error.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename To, typename From>
std::vector<To> cast_all(const std::vector<From>& values) {
  Scratch scratch;
  const auto made = cast(kDtypeOf<To>)
                        .op()
                        ->run_sample(Tensor::of(std::span<const From>(values),
                                                {static_cast<std::int64_t>(values.size())}),
                                     OpContext(scratch), 0);
  EXPECT_TRUE(made.ok());
  const auto result = (*made).tensor().template values<To>();
  return {result.begin(), result.end()};
}

TEST(CastTest, FloatsToIntegersTruncate) {
  EXPECT_THAT((cast_all<std::int32_t, double>({1.9, -1.9, 0.5, -0.5, 2147483647.9})),
              ElementsAre(1, -1, 0, 0, 2147483647));
  EXPECT_THAT((cast_all<std::uint8_t, float>({255.9F, 0.9F, -0.9F})), ElementsAre(255, 0, 0));
}

TEST(CastTest, FloatsOutOfRangeBecomeTheNearestIntegerAndNanZero) {
  EXPECT_THAT((cast_all<std::int8_t, double>({128, -129, 1e300, kInfinity, -kInfinity, kNan})),
              ElementsAre(127, -128, 127, 127, -128, 0));
  EXPECT_THAT((cast_all<std::uint8_t, double>({256, -1, kNan})), ElementsAre(255, 0, 0));
  // The largest integers of 32 and 64 bits are not floats: the next float is out of range.
  EXPECT_THAT((cast_all<std::int32_t, float>({0x1.0p31F, -0x1.0p31F, 0x1.fffffep30F})),
              ElementsAre(INT32_MAX, INT32_MIN, 2147483520));
  EXPECT_THAT((cast_all<std::int64_t, double>({0x1.0p63, -0x1.0p63, 0x1.fffffffffffffp62})),
              ElementsAre(INT64_MAX, INT64_MIN, 9223372036854774784));
  EXPECT_THAT((cast_all<std::uint64_t, float>({0x1.0p64F, 0x1.fffffep63F, -1.0F})),
              ElementsAre(UINT64_MAX, 18446742974197923840U, 0U));
}

TEST(CastTest, IntegersWrap) {
  EXPECT_THAT((cast_all<std::uint8_t, std::int32_t>({300, -1, -257})), ElementsAre(44, 255, 255));
  EXPECT_THAT((cast_all<std::int8_t, std::uint64_t>({UINT64_MAX, 128})), ElementsAre(-1, -128));
  EXPECT_THAT((cast_all<std::uint64_t, std::int8_t>({-1})), ElementsAre(UINT64_MAX));
}

TEST(CastTest, EverythingButZeroIsTrue) {
  EXPECT_THAT((cast_all<bool, double>({0.0, -0.0, 0.1, kNan})),
              ElementsAre(false, false, true, true));
  EXPECT_THAT((cast_all<bool, std::uint16_t>({0, 256})), ElementsAre(false, true));
}

TEST(CastTest, SmallFloatsAreRoundedAndRead) {
  EXPECT_THAT((cast_all<Half, float>({1.0F, 65520.0F, 1.0F + 0x1.0p-11F})),
              ElementsAre(Half(1.0F), Half(std::numeric_limits<float>::infinity()), Half(1.0F)));
  EXPECT_THAT((cast_all<std::int32_t, Half>({Half(-2.5F), Half(NAN), Half(INFINITY)})),
              ElementsAre(-2, 0, INT32_MAX));
  EXPECT_THAT((cast_all<Half, BFloat16>({BFloat16(3.0F)})), ElementsAre(Half(3.0F)));
}

TEST(CastTest, OneStaysOneBetweenAllNumbers) {
  for (int from = 0; from <= static_cast<int>(Dtype::f64); ++from)
    for (int to = 0; to <= static_cast<int>(Dtype::f64); ++to) {
      Scratch scratch;
      Sample sample = Tensor::scalar(true);
      for (const int dtype : {from, to, static_cast<int>(Dtype::f64)}) {
        auto made = cast(static_cast<Dtype>(dtype)).op()->run_sample(sample, OpContext(scratch), 0);
        ASSERT_TRUE(made);
        sample = *made;
        ASSERT_EQ(sample.tensor().dtype(), static_cast<Dtype>(dtype));
      }
      EXPECT_EQ(sample.tensor().item<double>(), 1.0) << from << " to " << to;
    }
}

TEST(CastTest, OnlyTheNamedFieldChanges) {
  const ElementSpec in_spec = ElementSpec::dict(
      {{"id", Dtype::i64, {}}, {"text", Dtype::bytes, {}}, {"x", Dtype::u8, {2}}});
  const auto op = cast(Dtype::f32, "x").op();
  const ElementSpec out_spec = op->output(in_spec);
  EXPECT_EQ(out_spec.text(), "{id: i64[], text: bytes[], x: f32[2]}");
  Scratch scratch;
  const ScratchBlock in(in_spec, 2, scratch);
  const ScratchBlock out(out_spec, 2, scratch);
  for (std::uint8_t row = 0; row < 2; ++row)
    ASSERT_FALSE(write_row(in.view(), row,
                           Sample::dict({{"id", Tensor::scalar(std::int64_t{row} + 40)},
                                         {"text", Tensor::bytes("abc")},
                                         {"x", Tensor::of(std::vector<std::uint8_t>{row, 255})}})));
  ASSERT_TRUE(op->run(in.view(), out.view(), OpContext(scratch)).ok());
  EXPECT_THAT(Block(out.view()).column<float>("x"), ElementsAre(0, 255, 1, 255));
  EXPECT_THAT(Block(out.view()).column<std::int64_t>("id"), ElementsAre(40, 41));
  EXPECT_EQ(read_row(out.view(), 1)["text"].text(), "abc");
}

TEST(CastTest, RowsOfDifferentLengthsAreCast) {
  const ElementSpec spec = ElementSpec::single(Dtype::u16, {kUnknown});
  const auto op = cast(Dtype::i64).op();
  const ElementSpec wanted = op->output(spec);
  EXPECT_EQ(wanted.text(), "i64[?]");
  Scratch scratch;
  const ScratchBlock in(spec, 2, scratch);
  const ScratchBlock out(wanted, 2, scratch);
  ASSERT_FALSE(write_row(in.view(), 0, Tensor::of(std::vector<std::uint16_t>{1, 65535})));
  ASSERT_FALSE(write_row(in.view(), 1, Tensor::of(std::vector<std::uint16_t>{})));
  ASSERT_TRUE(op->run(in.view(), out.view(), OpContext(scratch)).ok());
  EXPECT_THAT(read_row(out.view(), 0).tensor().values<std::int64_t>(), ElementsAre(1, 65535));
  EXPECT_THAT(read_row(out.view(), 1).tensor().shape(), ElementsAre(0));
}

TEST(CastTest, InvalidCastsThrowBeforeRunning) {
  const ElementSpec spec = ElementSpec::dict(
      {{"open", Dtype::f32, {kUnknown}}, {"text", Dtype::string, {}}, {"x", Dtype::u8, {2}}});
  EXPECT_THAT([&] { static_cast<void>(cast(Dtype::f32, "y").op()->output(spec)); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("\"y\""), HasSubstr(spec.text()))));
  EXPECT_THAT([&] { static_cast<void>(cast(Dtype::f32, "text").op()->output(spec)); },
              ThrowsMessage<ConfigError>(HasSubstr("\"text\" is string[]")));
  EXPECT_THROW(cast(Dtype::bytes), ConfigError);
  EXPECT_FALSE(cast(Dtype::f32).op()->output(ElementSpec::unknown()).known);
}

}  // namespace
}  // namespace penstock
