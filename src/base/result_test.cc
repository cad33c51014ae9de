#include "base/result.h"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

namespace penstock {
namespace {

static_assert(sizeof(Result<void>) == sizeof(void*));

TEST(ResultTest, HoldsAValueOrAFailure) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(7));
  ASSERT_TRUE(made.ok());
  const std::unique_ptr<int> taken = std::move(*made);
  EXPECT_EQ(*taken, 7);

  const Result<std::unique_ptr<int>> failed(Failure{"cut short", {}, {}, nullptr, 3});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.failure().message, "cut short");
  EXPECT_EQ(failed.failure().row, 3U);
}

TEST(ResultTest, VoidKeepsItsFailureWhenMoved) {
  Result<void> done;
  EXPECT_TRUE(done.ok());
  Result<void> failed(Failure{"cut short", {}, {}, nullptr, 3});
  done = std::move(failed);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.failure().row, 3U);
}

TEST(ResultTest, RaiseThrowsASampleErrorWithAllThatIsKnown) {
  const auto cause = std::make_exception_ptr(std::runtime_error("inner"));
  const Failure failure{"it broke", {.op = "map"}, "mend it", cause, 0};
  try {
    failure.raise();
  } catch (const SampleError& error) {
    EXPECT_STREQ(error.what(), "it broke [op map] -> mend it");
    EXPECT_EQ(error.cause(), cause);
  }
}

}  // namespace
}  // namespace penstock
