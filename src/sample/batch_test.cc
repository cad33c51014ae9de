#include "penstock/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "sample/batch_data.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

Sample sample_of(std::int32_t number) {
  return Sample::dict({{"none", Tensor::of(std::vector<float>{})},
                       {"text", Tensor::bytes(std::string(static_cast<std::size_t>(number), 'x'))},
                       {"x", Tensor::of(std::vector<std::int32_t>{number, -number})}});
}

class BatchTest : public testing::Test {
 protected:
  /// Rows 0, 1, ... with sample ids from 100.
  Batch make(ShareFacts facts) {
    auto data = ring_->acquire(layout_, facts);
    for (std::size_t row = 0; row < facts.rows; ++row) {
      EXPECT_FALSE(write_row(data->rows(), row, sample_of(static_cast<std::int32_t>(row))));
      data->rows().identity.sample_id[row] = 100 + row;
    }
    EXPECT_TRUE(data->gather());
    return Batch(data);
  }

  const std::shared_ptr<BatchRing> ring_ = std::make_shared<BatchRing>(Allocator::heap(), SIZE_MAX);
  const std::shared_ptr<const BatchLayout> layout_ = std::make_shared<BatchLayout>(
      ElementSpec::dict(
          {{"none", Dtype::f32, {0}}, {"text", Dtype::bytes, {}}, {"x", Dtype::i32, {2}}}),
      8);
};

TEST_F(BatchTest, ABatchHasItsEpochStepAndSampleIds) {
  const Batch batch =
      make({.epoch = 4, .step = 5, .share = 1, .shares = 2, .rows = 3, .step_rows = 7});
  EXPECT_EQ(batch.epoch(), 4U);
  EXPECT_EQ(batch.step(), 5U);
  EXPECT_EQ(batch.share(), 1U);
  EXPECT_EQ(batch.rows(), 3U);
  EXPECT_EQ(batch.valid_count(), 3U);
  EXPECT_EQ(batch.global_valid(), 7U);
  EXPECT_THAT(batch.sample_id(), ElementsAre(100, 101, 102));
  EXPECT_THAT(batch.valid(), AllOf(SizeIs(3), Each(1)));
  EXPECT_THAT(batch.weight(), AllOf(SizeIs(3), Each(1.0F)));
}

TEST_F(BatchTest, DenseFieldsHaveTheRowsAsFirstDimension) {
  const Batch batch = make({.rows = 3, .step_rows = 3});
  EXPECT_THAT(batch["x"].shape(), ElementsAre(3, 2));
  EXPECT_THAT(batch.values<std::int32_t>("x"), ElementsAre(0, 0, 1, -1, 2, -2));
  EXPECT_THAT(batch["none"].shape(), ElementsAre(3, 0));
}

TEST_F(BatchTest, VaryingFieldsAreRagged) {
  const Batch batch = make({.rows = 3, .step_rows = 3});
  EXPECT_THAT(batch.ragged("text").offsets, ElementsAre(0, 0, 1, 3));
  EXPECT_EQ(batch.ragged("text").values.raw().size(), 3U);
}

TEST_F(BatchTest, ARowIsTheSampleThatWasWritten) {
  const Batch batch = make({.rows = 4, .step_rows = 4});
  const Sample row = batch.row(3);
  EXPECT_EQ(row.structure(), sample_of(3).structure());
  EXPECT_EQ(row["text"].text(), "xxx");
  EXPECT_THAT(row["x"].values<std::int32_t>(), ElementsAre(3, -3));
  EXPECT_THAT(row["none"].shape(), ElementsAre(0));
  EXPECT_EQ(batch.row(0)["text"].text(), "");
  EXPECT_THROW(static_cast<void>(batch.row(4)), ConfigError);
}

TEST_F(BatchTest, WrongPathsAndKindsOfFieldsThrowWithARemedy) {
  const Batch batch = make({.rows = 2, .step_rows = 2});
  EXPECT_THAT([&] { static_cast<void>(batch["y"]); },
              ThrowsMessage<ConfigError>(HasSubstr(batch.spec().text())));
  EXPECT_THAT([&] { static_cast<void>(batch["text"]); },
              ThrowsMessage<ConfigError>(HasSubstr("ragged")));
  EXPECT_THAT([&] { static_cast<void>(batch.ragged("x")); },
              ThrowsMessage<ConfigError>(HasSubstr("\"x\"")));
  EXPECT_THROW(static_cast<void>(batch.values<float>("x")), ConfigError);
}

TEST_F(BatchTest, AnEmptyShareHasItsFieldsWithoutRows) {
  const Batch batch = make({.share = 2, .shares = 3, .rows = 0, .step_rows = 2});
  EXPECT_THAT(batch["x"].shape(), ElementsAre(0, 2));
  EXPECT_TRUE(batch.sample_id().empty());
  EXPECT_THAT(batch.ragged("text").offsets, ElementsAre(0));
  EXPECT_EQ(batch.loss_scale(), 0.0);
}

TEST_F(BatchTest, TheScaledMeansOfTheSharesAverageToTheMeanOfTheStep) {
  // 7 samples with losses 0..6 in shares of 3, 2 and 2 rows: the mean is 3.
  double next_loss = 0;
  double sum_of_shares = 0;
  for (std::uint32_t share = 0; share < 3; ++share) {
    const std::size_t rows = share == 0 ? 3 : 2;
    const Batch batch = make({.share = share, .shares = 3, .rows = rows, .step_rows = 7});
    double sum = 0;
    for (const float weight : batch.weight()) sum += static_cast<double>(weight) * next_loss++;
    sum_of_shares += sum / static_cast<double>(rows) * batch.loss_scale();
  }
  EXPECT_DOUBLE_EQ(sum_of_shares / 3, 3.0);
}

TEST_F(BatchTest, TheSlabIsReleasedWithTheLastHandleTensorOrRow) {
  Batch batch = make({.rows = 2, .step_rows = 2});
  Batch copy = batch;
  Tensor column = batch["x"];
  Sample row = batch.row(1);
  batch = Batch();
  copy = Batch();
  EXPECT_EQ(ring_->spare_bytes(), 0U);
  column = Tensor();
  EXPECT_EQ(ring_->spare_bytes(), 0U);
  EXPECT_EQ(row["text"].text(), "x");
  row = Sample();
  EXPECT_EQ(ring_->spare_bytes(), layout_->bytes);
}

TEST_F(BatchTest, AFenceDelaysReuseAfterAllHandlesAreDestroyed) {
  bool passed = false;
  Batch batch = make({.rows = 2, .step_rows = 2});
  const std::byte* const slab = batch["x"].raw().data();
  batch.set_fence([&] { return passed; });
  batch = make({.rows = 2, .step_rows = 2});
  EXPECT_NE(batch["x"].raw().data(), slab);
  passed = true;
  EXPECT_EQ(make({.rows = 2, .step_rows = 2})["x"].raw().data(), slab);
}

}  // namespace
}  // namespace penstock
