#include "penstock/result.h"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/cancelled.h"

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

TEST(ResultTest, OnlyDataAndALackOfMemoryMayBeSkippedByPolicy) {
  const auto failure_of = [](Failure::Kind kind) {
    Failure failure{"it broke"};
    failure.kind = kind;
    return failure;
  };
  EXPECT_FALSE(Failure{"it broke"}.must_raise());
  EXPECT_FALSE(failure_of(Failure::Kind::no_memory).must_raise());
  EXPECT_TRUE(failure_of(Failure::Kind::transient).must_raise());
  EXPECT_TRUE(failure_of(Failure::Kind::exit).must_raise());
  EXPECT_TRUE(cancelled(3).must_raise());
  EXPECT_TRUE(failure_of(Failure::Kind::exit).ends_pass());
  EXPECT_TRUE(cancelled(3).ends_pass());
  EXPECT_FALSE(failure_of(Failure::Kind::transient).ends_pass());
}

TEST(ResultTest, MakePermanentClearsTransientButNotCancelled) {
  Failure failure{"it broke"};
  failure.kind = Failure::Kind::transient;
  failure.make_permanent();
  EXPECT_FALSE(failure.transient());
  Failure stopped = cancelled(3);
  stopped.make_permanent();
  EXPECT_TRUE(stopped.cancelled());
}

// A user's function may use the same text.
TEST(ResultTest, AFailureIsCancelledByItsKindNotByItsText) {
  EXPECT_FALSE(Failure{cancelled(0).message}.cancelled());
  EXPECT_TRUE(cancelled(0).cancelled());
}

TEST(ResultTest, RaiseThrowsASampleErrorWithAllDetails) {
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
