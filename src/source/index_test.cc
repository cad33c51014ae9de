#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "penstock/detail/function.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "source/source.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Numbers = std::vector<std::uint64_t>;

/// Reads the samples of `numbers` with `fn`, each a vector of two floats.
template <typename F>
Result<void> decode(F fn, const Numbers& numbers) {
  const auto source = make_index(100, detail::make_index_fn(std::move(fn)), "");
  const ElementSpec spec = ElementSpec::single(Dtype::f32, {2});
  Scratch scratch;
  const ScratchBlock out(spec, numbers.size(), scratch);
  return source->decode(numbers, {}, out.view(), scratch);
}

Tensor pair_of(float value) {
  return Tensor::of(std::vector<float>{value, value});
}

TEST(IndexTest, SamplesAreTheResultsOfTheFunctionInAnyOrder) {
  const auto source = make_index(
      100, detail::make_index_fn([](std::uint64_t i) { return static_cast<double>(i) / 2; }), "");
  EXPECT_EQ(source->spec(), ElementSpec::single(Dtype::f64));
  Scratch scratch;
  const ScratchBlock out(source->spec(), 3, scratch);
  ASSERT_TRUE(source->decode(Numbers{9, 0, 3}, {}, out.view(), scratch).ok());
  EXPECT_THAT(Block(out.view()).column<double>(), ElementsAre(4.5, 0, 1.5));
}

TEST(IndexTest, TheSpecOfAFunctionOfSamplesIsUnknown) {
  const auto source =
      make_index(1, detail::make_index_fn([](std::uint64_t) { return pair_of(1); }), "");
  EXPECT_FALSE(source->spec().known);
}

TEST(IndexTest, AnExceptionNamesItsRowAndIsPreserved) {
  const auto done = decode(
      [](std::uint64_t i) {
        if (i == 40) throw std::out_of_range("no 40");
        return pair_of(1);
      },
      {10, 20, 30, 40, 50});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 3U);
  EXPECT_THAT(done.failure().message, HasSubstr("no 40"));
  EXPECT_THAT([&] { std::rethrow_exception(done.failure().cause); },
              ThrowsMessage<std::out_of_range>("no 40"));
}

TEST(IndexTest, AnyThrownValueIsCaught) {
  const auto done = decode(
      [](std::uint64_t i) {
        if (i == 20) throw 7;
        return pair_of(1);
      },
      {10, 20});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 1U);
  EXPECT_THROW(std::rethrow_exception(done.failure().cause), int);
}

TEST(IndexTest, AnotherShapeNamesItsRowAndBothShapes) {
  const auto done = decode(
      [](std::uint64_t i) { return i == 30 ? Tensor::of(std::vector<float>(3)) : pair_of(1); },
      {10, 20, 30});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 2U);
  EXPECT_THAT(done.failure().message, AllOf(HasSubstr("f32[3]"), HasSubstr("f32[2]")));
}

TEST(IndexTest, ASampleWithoutTensorsIsAFailureOfItsRow) {
  const auto done =
      decode([](std::uint64_t i) { return i == 20 ? Sample() : Sample(pair_of(1)); }, {10, 20});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().row, 1U);
}

TEST(IndexTest, ANegativeSizeIsRefused) {
  const auto zero = [](std::uint64_t) { return 0.0; };
  EXPECT_THROW(make_index(static_cast<std::uint64_t>(-1), detail::make_index_fn(zero), ""),
               ConfigError);
  EXPECT_EQ(make_index(std::uint64_t{1} << 62, detail::make_index_fn(zero), "")->size(),
            std::uint64_t{1} << 62);
}

TEST(IndexTest, TheIdentityIsSizeAndName) {
  const auto identity = [](std::uint64_t size, const char* name) {
    Digest digest;
    make_index(size, detail::make_index_fn([](std::uint64_t) { return 0.0; }), name)
        ->identify(digest);
    return digest.text();
  };
  EXPECT_EQ(identity(5, "a"), identity(5, "a"));
  EXPECT_NE(identity(5, "a"), identity(6, "a"));
  EXPECT_NE(identity(5, "a"), identity(5, "b"));
}

}  // namespace
}  // namespace penstock
