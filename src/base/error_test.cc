#include "penstock/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/check.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

static_assert(std::is_base_of_v<Error, ConfigError> && std::is_base_of_v<Error, StateError> &&
              std::is_base_of_v<Error, SampleError> && std::is_base_of_v<Error, ResourceError> &&
              std::is_base_of_v<Error, IoError> && std::is_base_of_v<Error, CancelledError> &&
              std::is_base_of_v<Error, InternalError>);

TEST(ErrorTest, WhereContainsOnlyKnownParts) {
  EXPECT_EQ(Where{}.text(), "");
  EXPECT_EQ((Where{.op = "map#1", .sample = SampleKey{0, 12}, .epoch = 0, .step = 3}.text()),
            "sample 12 of source 0, op map#1, epoch 0, step 3");
  EXPECT_EQ((Where{.dataset = "train",
                   .op = "cast",
                   .field = "x",
                   .sample = SampleKey{2, 5},
                   .epoch = 1,
                   .step = 0,
                   .position = 64}
                 .text()),
            "dataset train, sample 5 of source 2, field x, op cast, epoch 1, step 0, position 64");
}

TEST(ErrorTest, WhatContainsTheMessageThePlaceAndTheRemedy) {
  EXPECT_STREQ(Error("it broke").what(), "it broke");
  const ConfigError error("it broke", {.op = "map"}, "mend it");
  EXPECT_STREQ(error.what(), "it broke [op map] -> mend it");
  EXPECT_EQ(error.message(), "it broke");
  EXPECT_EQ(error.where().op, "map");
  EXPECT_EQ(error.remedy(), "mend it");
}

TEST(ErrorTest, SampleErrorContainsTheUsersException) {
  const SampleError error("threw", {}, {}, std::make_exception_ptr(std::out_of_range("row 7")));
  EXPECT_THAT([&] { std::rethrow_exception(error.cause()); },
              ThrowsMessage<std::out_of_range>("row 7"));
  EXPECT_EQ(SampleError("cut short").cause(), nullptr);
}

TEST(CheckTest, AFailedCheckNamesTheExpressionsAndBothValues) {
  const int cursor = 7;
  EXPECT_THAT([&] { PENSTOCK_CHECK_LE(cursor, 3); },
              ThrowsMessage<InternalError>(HasSubstr("cursor <= 3 does not hold: 7 vs 3")));
  EXPECT_THAT([&] { PENSTOCK_CHECK(cursor == 8); },
              ThrowsMessage<InternalError>(HasSubstr("cursor == 8 does not hold")));
}

TEST(CheckTest, APassingCheckEvaluatesItsArgumentsOnce) {
  int reads = 0;
  const auto read = [&] { return ++reads; };
  PENSTOCK_CHECK_EQ(read(), 1);
  PENSTOCK_CHECK_LT(read(), 3);
  EXPECT_EQ(reads, 2);
}

}  // namespace
}  // namespace penstock
