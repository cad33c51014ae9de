#include "verb/batch.h"

#include <gmock/gmock.h>

#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(BatchVerbTest, TheTailOfABatchOverridesThePlans) {
  const Dataset named = tagged(0, 10).batch(4, {.tail = Tail::drop});
  EXPECT_EQ(named.node()->groups(Tail::pad)->tail, Tail::drop);
  const Dataset unnamed = tagged(0, 10).batch(4);
  EXPECT_EQ(unnamed.node()->groups(Tail::pad)->tail, Tail::pad);
  EXPECT_EQ(unnamed.node()->groups({})->tail, Tail::short_);
  EXPECT_EQ(unnamed.node()->groups({})->batch, 4U);
}

TEST(BatchVerbTest, OnlyAWrapWithAShortLastBatchCopiesSamples) {
  const auto copies = [](std::int64_t size, Tail tail) {
    return tagged(0, 12).batch(size, {.tail = tail}).node()->facts().copies;
  };
  EXPECT_TRUE(copies(5, Tail::wrap));
  EXPECT_FALSE(copies(4, Tail::wrap));
  EXPECT_FALSE(copies(5, Tail::pad));
}

TEST(BatchVerbTest, ElementsThatLookLikeBatchesAreSuspicious) {
  const auto fields = [](Shape images, Shape labels) {
    return ElementSpec::tuple(
        {ElementSpec::single(Dtype::f32, images), ElementSpec::single(Dtype::i64, labels)});
  };
  EXPECT_THAT(batch_of_batches(fields({8, 3}, {8})).value_or(""), HasSubstr("a batch of 8 rows"));
  EXPECT_EQ(batch_of_batches(fields({8, 3}, {4})), std::nullopt);
  EXPECT_EQ(batch_of_batches(fields({8}, {8})), std::nullopt) << "two vectors of one length";
  EXPECT_EQ(batch_of_batches(ElementSpec::unknown()), std::nullopt);
}

TEST(BatchVerbTest, BatchesAreNotBatchedAgain) {
  EXPECT_THAT(refusal([] { return tagged(0, 9).batch(2).batch(2); }), HasSubstr("unbatch() first"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).batch(0); }), HasSubstr("must be positive"));
}

}  // namespace
}  // namespace penstock
