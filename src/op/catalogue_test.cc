#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "op/op.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(CatalogueTest, AnOpIsRecreatedFromItsWordAndArguments) {
  const auto op = cast(Dtype::bf16, "x").op();
  EXPECT_THAT(catalogue_words(), Contains(op->word()));
  const auto again = make_catalogued_op(op->word(), op->arguments());
  EXPECT_EQ(again->describe(), op->describe());
  EXPECT_EQ(again->arguments(), op->arguments());
}

TEST(CatalogueTest, AnUnknownWordThrowsAndListsTheKnownOnes) {
  EXPECT_THAT([] { make_catalogued_op("rotate", Json::object()); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("\"rotate\""), HasSubstr("cast"))));
}

TEST(CatalogueTest, MissingArgumentsAreAConfigError) {
  for (const auto& word : catalogue_words())
    EXPECT_THROW(make_catalogued_op(word, Json::object()), ConfigError) << word;
}

}  // namespace
}  // namespace penstock
