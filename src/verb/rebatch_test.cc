#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/loader.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Batches = std::vector<std::vector<std::int64_t>>;

Batches batches_of(const Dataset& dataset) {
  Loader loader(dataset, {.threads = 2});
  Batches batches;
  for (const Batch& batch : loader) {
    const auto values = batch.values<std::int64_t>();
    batches.emplace_back(values.begin(), values.end());
  }
  return batches;
}

TEST(RebatchTest, RowsKeepTheirOrderAcrossTheOldBatches) {
  EXPECT_EQ(batches_of(Dataset::range(7).batch(3).rebatch(2)),
            (Batches{{0, 1}, {2, 3}, {4, 5}, {6}}));
  EXPECT_EQ(batches_of(Dataset::range(7).batch(2).rebatch(5)), (Batches{{0, 1, 2, 3, 4}, {5, 6}}));
}

TEST(RebatchTest, RowsThatTheOldBatchesDroppedStayDropped) {
  EXPECT_EQ(batches_of(Dataset::range(7).batch(3, {.drop_remainder = true}).rebatch(4)),
            (Batches{{0, 1, 2, 3}, {4, 5}}));
  EXPECT_EQ(batches_of(Dataset::range(7).batch(3).rebatch(4, {.drop_remainder = true})),
            (Batches{{0, 1, 2, 3}}));
}

TEST(RebatchTest, IsUnbatchAndBatch) {
  const Dataset batches = Dataset::range(100).shuffle({.seed = 3}).batch(8);
  EXPECT_EQ(batches.rebatch(5).digests().order, batches.unbatch().batch(5).digests().order);
  EXPECT_EQ(batches.rebatch(5).cardinality().count(), 20U);
}

TEST(RebatchTest, ElementsWithSeveralRowsAreBatchedByRows) {
  const Dataset pairs = Dataset::from_tensor_slices(Tensor::of(
      std::span<const std::int64_t>(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}), {3, 2}));
  EXPECT_EQ(batches_of(pairs.rebatch(4)), (Batches{{0, 1, 2, 3}, {4, 5}}));
}

TEST(RebatchTest, ASizeBelowOneIsRefused) {
  EXPECT_THAT([] { (void)Dataset::range(4).batch(2).rebatch(0); },
              ThrowsMessage<ConfigError>(HasSubstr("rebatch: size must be positive, got 0")));
}

}  // namespace
}  // namespace penstock
