#include "op/op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.h"
#include "penstock/detail/function.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename F>
std::shared_ptr<const Op> typed(F fn) {
  return make_column_op(detail::make_column_fn(fn), "");
}

TEST(OpTest, ASampleIsABlockOfOneRow) {
  Scratch scratch;
  const auto op = typed([](float x, float y) { return x + y; });
  const auto made = op->run_sample(
      Sample::tuple({Tensor::of(std::vector<float>{1, 2}), Tensor::of(std::vector<float>{10, 20})}),
      OpContext(scratch), 0);
  ASSERT_TRUE(made) << made.failure().message;
  EXPECT_THAT((*made).tensor().values<float>(), ElementsAre(11, 22));
}

TEST(OpTest, FieldsThatTheOpCopiesOutliveIt) {
  Scratch scratch;
  const auto op = make_cast({{"dtype", "f64"}, {"path", "x"}});
  auto made = [&] {
    return op->run_sample(
        Sample::dict({{"text", Tensor::bytes("abc")}, {"x", Tensor::scalar(std::uint8_t{7})}}),
        OpContext(scratch), 0);
  }();
  ASSERT_TRUE(made) << made.failure().message;
  EXPECT_EQ((*made)["text"].text(), "abc");
  EXPECT_EQ((*made)["x"].item<double>(), 7.0);
}

TEST(OpTest, AFailureHasTheRowOfTheCaller) {
  Scratch scratch;
  const auto op = typed([](float x) {
    if (x > 1) throw std::domain_error("too large");
    return x;
  });
  const auto made = op->run_sample(Tensor::of(std::vector<float>{0, 0, 5}), OpContext(scratch), 9);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().row, 9U);
  EXPECT_THAT(made.failure().message, HasSubstr("too large"));
}

TEST(OpTest, ASampleThatTheOpDoesNotAcceptFailsWithARemedy) {
  Scratch scratch;
  const auto op = typed([](float x) { return x; });
  const auto made = op->run_sample(Tensor::scalar(1.0), OpContext(scratch), 4);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().row, 4U);
  EXPECT_THAT(made.failure().message, AllOf(HasSubstr("(f32) -> (f32)"), HasSubstr("f64")));
  EXPECT_FALSE(made.failure().remedy.empty());
  EXPECT_FALSE(op->run_sample(Sample(), OpContext(scratch), 4).ok());
}

TEST(OpTest, TheRandomGeneratorIsThatOfTheRow) {
  Scratch scratch;
  const auto op = typed([](std::uint64_t x, Rng& rng) { return x + rng(); });
  const RowRng rng = [](std::size_t row) { return Rng(77, row); };
  const auto made = op->run_sample(Tensor::scalar(std::uint64_t{0}), OpContext(scratch, &rng), 5);
  ASSERT_TRUE(made);
  EXPECT_EQ((*made).tensor().item<std::uint64_t>(), Rng(77, 5)());
}

}  // namespace
}  // namespace penstock
