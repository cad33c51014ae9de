#include "sample/batch_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::Each;
using testing::ElementsAre;

const ElementSpec& mixed_spec() {
  static const ElementSpec spec = ElementSpec::dict({{"flag", Dtype::boolean, {}},
                                                     {"none", Dtype::f32, {0}},
                                                     {"text", Dtype::string, {}},
                                                     {"x", Dtype::i32, {3}}});
  return spec;
}

std::shared_ptr<const BatchLayout> layout_of(std::size_t rows) {
  return std::make_shared<BatchLayout>(ElementSpec::single(Dtype::u64), rows);
}

std::shared_ptr<BatchRing> ring_of(std::size_t spare_bytes_max) {
  return std::make_shared<BatchRing>(Allocator::heap(), spare_bytes_max);
}

TEST(BatchLayoutTest, PartsStartOn64AndDoNotOverlap) {
  for (const std::size_t rows : {0, 1, 5, 64, 1000}) {
    const BatchLayout layout(mixed_spec(), rows);
    std::vector<std::pair<std::size_t, std::size_t>> parts{{layout.sample_id_offset, rows * 8},
                                                           {layout.valid_offset, rows},
                                                           {layout.weight_offset, rows * 4}};
    for (std::size_t i = 0; i < layout.field_offset.size(); ++i)
      parts.emplace_back(layout.field_offset[i], rows * layout.field_row_bytes[i]);
    std::ranges::sort(parts);
    std::size_t end = 0;
    for (const auto& [offset, bytes] : parts) {
      EXPECT_EQ(offset % 64, 0U);
      EXPECT_GE(offset, end);
      end = offset + bytes;
    }
    EXPECT_GE(layout.bytes, end);
    EXPECT_GT(layout.bytes, 0U);
    EXPECT_THAT(layout.field_row_bytes, ElementsAre(1, 0, 0, 12));
    EXPECT_THAT(layout.varying, ElementsAre(2));
  }
}

TEST(BatchDataTest, GatherPacksVaryingFieldsAsOffsetsAndValues) {
  const auto layout = std::make_shared<BatchLayout>(mixed_spec(), 3);
  const auto batch = ring_of(0)->acquire(layout, {.rows = 3, .step_rows = 3});
  const std::vector<std::string> texts{"penstock", "", "x"};
  for (std::size_t row = 0; row < 3; ++row)
    ASSERT_EQ(write_row(batch->rows(), row,
                        Sample::dict({{"flag", Tensor::scalar(true)},
                                      {"none", Tensor::of(std::vector<float>{})},
                                      {"text", Tensor::bytes(texts[row], Dtype::string)},
                                      {"x", Tensor::of(std::vector<std::int32_t>{1, 2, 3})}})),
              std::nullopt);
  ASSERT_TRUE(batch->gather());
  const PackedField* const text = batch->packed(2);
  ASSERT_NE(text, nullptr);
  EXPECT_THAT(text->offsets, ElementsAre(0, 8, 8, 9));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(text->values.data()), 9), "penstockx");
  EXPECT_EQ(batch->bytes(), layout->bytes + 9 + 4 * sizeof(std::uint64_t));
  EXPECT_EQ(batch->packed(3), nullptr);
}

TEST(BatchDataTest, DroppedRowsAreRemovedAndLaterOnesMoveUp) {
  const auto layout = std::make_shared<BatchLayout>(
      ElementSpec::dict({{"id", Dtype::u64, {}}, {"text", Dtype::bytes, {}}}), 5);
  const auto ring = ring_of(0);
  const auto ids_without = [&](const std::vector<std::uint8_t>& dropped) {
    const auto batch = ring->acquire(layout, {.rows = 5, .step_rows = 9});
    for (std::uint64_t row = 0; row < 5; ++row) {
      EXPECT_FALSE(write_row(batch->rows(), row,
                             Sample::dict({{"id", Tensor::scalar(row)},
                                           {"text", Tensor::bytes(std::string(row, 'x'))}})));
      batch->rows().identity.sample_id[row] = row;
    }
    batch->drop_rows(dropped);
    EXPECT_TRUE(batch->gather());
    const auto ids = Block(batch->rows()).column<std::uint64_t>("id");
    EXPECT_EQ(batch->facts().rows, ids.size());
    EXPECT_EQ(batch->facts().step_rows, 9U);
    EXPECT_EQ(batch->packed(1)->offsets.size(), ids.size() + 1);
    for (std::size_t row = 0; row < ids.size(); ++row) {
      EXPECT_EQ(batch->packed(1)->offsets[row + 1] - batch->packed(1)->offsets[row], ids[row]);
      EXPECT_EQ(batch->rows().identity.sample_id[row], ids[row]);
    }
    return std::vector<std::uint64_t>(ids.begin(), ids.end());
  };
  EXPECT_THAT(ids_without({0, 0, 0, 0, 0}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ids_without({1, 0, 0, 1, 0}), ElementsAre(1, 2, 4));
  EXPECT_THAT(ids_without({0, 1, 1, 1, 1}), ElementsAre(0));
  EXPECT_THAT(ids_without({1, 1, 1, 1, 1}), ElementsAre());
}

/// Rows with ids and numbers from 1 and texts of that length, in five slots of two shares.
class PaddedTest : public testing::Test {
 protected:
  std::shared_ptr<BatchData> make(const ShareFacts& facts) {
    auto batch = ring_->acquire(layout_, facts);
    for (std::uint64_t row = 0; row < facts.rows; ++row) {
      EXPECT_FALSE(write_row(batch->rows(), row,
                             Sample::dict({{"id", Tensor::scalar(row + 1)},
                                           {"text", Tensor::bytes(std::string(row + 1, 'x'))}})));
      batch->rows().identity.sample_id[row] = row + 1;
    }
    return batch;
  }
  static std::vector<std::uint64_t> ids(const std::shared_ptr<BatchData>& batch) {
    const auto all = Batch(batch).values<std::uint64_t>("id");
    return {all.begin(), all.end()};
  }
  static constexpr ShareFacts kPadded{.shares = 2, .rows = 3, .step_rows = 6, .slots = 5};

  const std::shared_ptr<BatchLayout> layout_ = std::make_shared<BatchLayout>(
      ElementSpec::dict({{"id", Dtype::u64, {}}, {"text", Dtype::bytes, {}}}), 5);
  const std::shared_ptr<BatchRing> ring_ = ring_of(SIZE_MAX);
};

TEST_F(PaddedTest, EmptySlotsAreZeroWeighNothingAndHaveNoSample) {
  auto data = make({.rows = 5, .step_rows = 5});  // leaves values in the slab
  ASSERT_TRUE(data->gather());
  data.reset();
  data = make(kPadded);
  ASSERT_TRUE(data->gather());
  const Batch batch(data);
  EXPECT_EQ(batch.rows(), 5U);
  EXPECT_EQ(batch.valid_count(), 3U);
  EXPECT_EQ(batch.global_valid(), 6U);
  EXPECT_NEAR(batch.loss_scale(), 1.0, 1e-7);
  EXPECT_THAT(ids(data), ElementsAre(1, 2, 3, 0, 0));
  EXPECT_THAT(batch.sample_id(), ElementsAre(1, 2, 3, UINT64_MAX, UINT64_MAX));
  EXPECT_THAT(batch.valid(), ElementsAre(1, 1, 1, 0, 0));
  const float each = 2.0F * 5 / 6;
  EXPECT_THAT(batch.weight(), ElementsAre(each, each, each, 0, 0));
  EXPECT_THAT(batch.ragged("text").offsets, ElementsAre(0, 1, 3, 6, 6, 6));
  EXPECT_EQ(batch.row(4)["text"].text(), "");
}

TEST_F(PaddedTest, DroppedRowsOfAPaddedShareBecomePadding) {
  const auto data = make(kPadded);
  data->drop_rows(std::vector<std::uint8_t>{0, 1, 0});
  ASSERT_TRUE(data->gather());
  const Batch batch(data);
  EXPECT_EQ(batch.rows(), 5U);
  EXPECT_EQ(batch.valid_count(), 2U);
  EXPECT_THAT(ids(data), ElementsAre(1, 0, 3, 0, 0));
  EXPECT_THAT(batch.sample_id(), ElementsAre(1, UINT64_MAX, 3, UINT64_MAX, UINT64_MAX));
  EXPECT_THAT(batch.valid(), ElementsAre(1, 0, 1, 0, 0));
  EXPECT_EQ(batch.weight()[1], 0.0F);
  EXPECT_THAT(batch.ragged("text").offsets, ElementsAre(0, 1, 1, 4, 4, 4));
}

TEST_F(PaddedTest, OneRowRemainsIfAllAreDroppedAndAShareMustNotBeEmpty) {
  auto data = make({.shares = 2, .rows = 3, .step_rows = 6});
  data->drop_rows(std::vector<std::uint8_t>{1, 1, 1}, true);
  ASSERT_TRUE(data->gather());
  const Batch batch(data);
  EXPECT_EQ(batch.rows(), 1U);
  EXPECT_EQ(batch.valid_count(), 0U);
  EXPECT_THAT(ids(data), ElementsAre(0));
  EXPECT_THAT(batch.sample_id(), ElementsAre(UINT64_MAX));
  EXPECT_EQ(batch.weight()[0], 0.0F);
  data = make({.shares = 2, .rows = 3, .step_rows = 6});
  data->drop_rows(std::vector<std::uint8_t>{1, 0, 1}, true);
  ASSERT_TRUE(data->gather());
  EXPECT_EQ(data->facts().rows, 1U);
  EXPECT_EQ(data->valid_count(), 1U);
}

TEST_F(PaddedTest, APaddedSlabCanBeReused) {
  auto data = make(kPadded);
  data->drop_rows(std::vector<std::uint8_t>{1, 1, 1});
  ASSERT_TRUE(data->gather());
  const BatchData* const slab = data.get();
  data.reset();
  data = make({.rows = 5, .step_rows = 5});
  ASSERT_TRUE(data->gather());
  ASSERT_EQ(data.get(), slab);
  const Batch batch(data);
  EXPECT_EQ(batch.valid_count(), 5U);
  EXPECT_THAT(batch.valid(), Each(1));
  EXPECT_THAT(batch.weight(), Each(1.0F));
}

TEST_F(PaddedTest, AShareWithoutSamplesIsAllEmpty) {
  const auto data = make({.share = 1, .shares = 2, .rows = 0, .step_rows = 1, .slots = 2});
  ASSERT_TRUE(data->gather());
  const Batch batch(data);
  EXPECT_EQ(batch.rows(), 2U);
  EXPECT_EQ(batch.valid_count(), 0U);
  EXPECT_THAT(batch.weight(), ElementsAre(0, 0));
  EXPECT_THAT(batch.ragged("text").offsets, ElementsAre(0, 0, 0));
}

TEST_F(PaddedTest, MoreSamplesThanSlotsAreAnInternalError) {
  EXPECT_THROW(ring_->acquire(layout_, {.rows = 3, .step_rows = 3, .slots = 2}), InternalError);
}

TEST(BatchDataTest, ABatchWithoutRowsIsValid) {
  const auto layout = std::make_shared<BatchLayout>(mixed_spec(), 3);
  const auto batch = ring_of(0)->acquire(layout, {.rows = 0, .step_rows = 2});
  ASSERT_TRUE(batch->gather());
  EXPECT_EQ(batch->rows().rows, 0U);
  EXPECT_THAT(batch->packed(2)->offsets, ElementsAre(0));
}

TEST(BatchDataTest, MoreRowsThanTheLayoutHoldsAreRefused) {
  EXPECT_THROW(ring_of(0)->acquire(layout_of(3), {.rows = 4, .step_rows = 4}), InternalError);
}

TEST(BatchRingTest, AReleasedBatchIsReused) {
  const auto layout = layout_of(4);
  const auto ring = ring_of(SIZE_MAX);
  auto batch = ring->acquire(layout, {.step = 1, .rows = 4, .step_rows = 4});
  const BatchData* const first = batch.get();
  const auto other = ring->acquire(layout, {.step = 2, .rows = 4, .step_rows = 4});
  EXPECT_NE(other.get(), first);
  batch.reset();
  EXPECT_EQ(ring->spare_bytes(), layout->bytes);
  batch = ring->acquire(layout, {.step = 3, .rows = 2, .step_rows = 2});
  EXPECT_EQ(batch.get(), first);
  EXPECT_EQ(batch->facts().step, 3U);
  EXPECT_EQ(batch->rows().rows, 2U);
  EXPECT_EQ(ring->spare_bytes(), 0U);
}

TEST(BatchRingTest, AReusedBatchContainsNothingOfThePreviousOne) {
  const auto layout = std::make_shared<BatchLayout>(ElementSpec::single(Dtype::bytes), 2);
  const auto ring = ring_of(SIZE_MAX);
  auto batch = ring->acquire(layout, {.rows = 2, .step_rows = 2});
  for (std::size_t row = 0; row < 2; ++row)
    ASSERT_FALSE(write_row(batch->rows(), row, Tensor::bytes("before")));
  ASSERT_TRUE(batch->gather());
  batch.reset();
  // A failed step is never gathered.
  batch = ring->acquire(layout, {.rows = 2, .step_rows = 2});
  ASSERT_FALSE(write_row(batch->rows(), 0, Tensor::bytes("failed")));
  batch.reset();
  batch = ring->acquire(layout, {.rows = 1, .step_rows = 1});
  ASSERT_FALSE(write_row(batch->rows(), 0, Tensor::bytes("after")));
  ASSERT_TRUE(batch->gather());
  EXPECT_THAT(batch->packed(0)->offsets, ElementsAre(0, 5));
  EXPECT_EQ(batch->bytes(), layout->bytes + 5 + 2 * sizeof(std::uint64_t));
}

TEST(BatchRingTest, ASpareBatchHoldsNoTexts) {
  const auto layout = std::make_shared<BatchLayout>(ElementSpec::single(Dtype::bytes), 1);
  const auto ring = ring_of(SIZE_MAX);
  auto batch = ring->acquire(layout, {.rows = 1, .step_rows = 1});
  ASSERT_FALSE(write_row(batch->rows(), 0, Tensor::bytes(std::string(1000, 'x'))));
  ASSERT_TRUE(batch->gather());
  EXPECT_GT(batch->bytes(), layout->bytes + 1000);
  const BatchData* const spare = batch.get();
  batch.reset();
  EXPECT_EQ(spare->bytes(), layout->bytes);
  EXPECT_EQ(ring->spare_bytes(), layout->bytes);
}

TEST(BatchRingTest, ASpareBatchThatADeviceReadsIsCountedWithItsTexts) {
  const auto layout = std::make_shared<BatchLayout>(ElementSpec::single(Dtype::bytes), 1);
  const auto ring = ring_of(SIZE_MAX);
  std::atomic<bool> passed = false;
  auto batch = ring->acquire(layout, {.rows = 1, .step_rows = 1});
  ASSERT_FALSE(write_row(batch->rows(), 0, Tensor::bytes(std::string(1000, 'x'))));
  ASSERT_TRUE(batch->gather());
  batch->set_fence([&] { return passed.load(); });
  batch.reset();
  EXPECT_GT(ring->spare_bytes(), layout->bytes + 1000);
  passed = true;
  batch = ring->acquire(layout, {.rows = 1, .step_rows = 1});
  EXPECT_EQ(ring->spare_bytes(), 0U);
}

TEST(BatchRingTest, AFenceDelaysReuseUntilItPasses) {
  const auto layout = layout_of(4);
  const auto ring = ring_of(SIZE_MAX);
  std::atomic<bool> passed = false;
  auto batch = ring->acquire(layout, {.rows = 4, .step_rows = 4});
  const BatchData* const first = batch.get();
  batch->set_fence([&] { return passed.load(); });
  batch.reset();
  EXPECT_NE(ring->acquire(layout, {.rows = 4, .step_rows = 4}).get(), first);
  // Of the two spare batches only the one without a fence may be reused.
  batch = ring->acquire(layout, {.rows = 4, .step_rows = 4});
  EXPECT_NE(batch.get(), first);
  passed = true;
  auto again = ring->acquire(layout, {.rows = 4, .step_rows = 4});
  EXPECT_EQ(again.get(), first);
  // The fence was for one use.
  passed = false;
  again.reset();
  EXPECT_EQ(ring->acquire(layout, {.rows = 4, .step_rows = 4}).get(), first);
}

TEST(BatchRingTest, SpareBatchesAreLimitedExceptThoseThatADeviceReads) {
  const auto layout = layout_of(4);
  const auto ring = ring_of(2 * layout->bytes);
  std::vector<std::shared_ptr<BatchData>> held;
  held.reserve(5);
  for (int i = 0; i < 5; ++i) held.push_back(ring->acquire(layout, {.rows = 4, .step_rows = 4}));
  held.clear();
  EXPECT_EQ(ring->spare_bytes(), 2 * layout->bytes);
  for (int i = 0; i < 3; ++i) {
    held.push_back(ring->acquire(layout, {.rows = 4, .step_rows = 4}));
    held.back()->set_fence([] { return false; });
  }
  held.clear();
  EXPECT_EQ(ring->spare_bytes(), 3 * layout->bytes);
}

TEST(BatchRingTest, ABatchOfAnotherLayoutIsNotReused) {
  const auto layout = layout_of(4);
  const auto ring = ring_of(SIZE_MAX);
  const BatchData* const first = ring->acquire(layout, {.rows = 4, .step_rows = 4}).get();
  const auto other_layout = layout_of(5);
  const auto other = ring->acquire(other_layout, {.rows = 5, .step_rows = 5});
  EXPECT_NE(other.get(), first);
  EXPECT_EQ(&other->layout(), other_layout.get());
  EXPECT_EQ(ring->spare_bytes(), layout->bytes);
}

TEST(BatchRingTest, ABatchOutlivesTheHandleOfItsRing) {
  auto ring = ring_of(SIZE_MAX);
  const auto batch = ring->acquire(layout_of(4), {.rows = 4, .step_rows = 4});
  ring.reset();
  auto* const values = reinterpret_cast<std::uint64_t*>(batch->rows().columns[0].data);
  std::fill_n(values, 4, 7);
  EXPECT_THAT(std::vector<std::uint64_t>(values, values + 4), Each(7));
}

TEST(BatchRingTest, ValuesThatAConsumerWroteAreNotInALaterBatch) {
  const auto ring = ring_of(1 << 20);
  const auto layout = layout_of(8);
  ShareFacts facts;
  facts.rows = facts.step_rows = 6;
  for (int round = 0; round < 3; ++round) {
    const auto data = ring->acquire(layout, facts);
    auto* const valid = reinterpret_cast<std::uint8_t*>(data->at(layout->valid_offset));
    auto* const weight = reinterpret_cast<float*>(data->at(layout->weight_offset));
    EXPECT_THAT(std::vector<int>(valid, valid + 6), Each(1)) << round;
    EXPECT_THAT(std::vector<float>(weight, weight + 6), Each(1.0F)) << round;
    std::fill_n(valid, 6, std::uint8_t{0});
    std::fill_n(weight, 6, 0.25F);
  }
}

}  // namespace
}  // namespace penstock
