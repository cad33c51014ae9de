// Functions of the list of all samples of a batch, whose result is unknown before running.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "op/op.h"
#include "penstock/dataset.h"
#include "penstock/loader.h"
#include "sample/rows.h"
#include "verb/map.h"

namespace penstock {
namespace {

/// Gives each row `width` values: the number of rows of the batch, or the declared number.
class WidenOp final : public Op {
 public:
  explicit WidenOp(std::optional<ElementSpec> spec = {}, std::size_t width = 0)
      : spec_(std::move(spec)), width_(width) {}
  [[nodiscard]] std::string word() const override { return "map"; }
  [[nodiscard]] std::string describe() const override { return "map widen"; }
  [[nodiscard]] bool row_wise() const override { return false; }
  [[nodiscard]] bool takes_lists() const override { return true; }
  [[nodiscard]] ElementSpec output(const ElementSpec&) const override {
    return spec_.value_or(ElementSpec::unknown());
  }
  Result<void> run(const BlockView& in, const BlockView& out, const OpContext&) const override {
    ++calls;
    for (std::size_t row = 0; row < in.rows; ++row) {
      const auto value = read_row(in, row).tensor().item<std::int64_t>();
      const std::vector<std::int64_t> wide(width_ > 0 ? width_ : in.rows, value);
      if (const auto wrong = write_row(out, row, Sample(Tensor::of(wide))))
        return Failure{*wrong, {}, {}, nullptr, row};
    }
    return {};
  }
  mutable std::atomic<int> calls{0};

 private:
  std::optional<ElementSpec> spec_;
  std::size_t width_;
};

Dataset numbers(std::uint64_t count) {
  return Dataset::from_index(
      count, [](std::uint64_t i) { return Sample(Tensor::scalar(static_cast<std::int64_t>(i))); });
}

TEST(ListOpTest, TheFirstStepShowsTheResultAndIsComputedOnce) {
  for (const unsigned threads : {0U, 2U}) {
    const auto op = std::make_shared<WidenOp>(std::nullopt, 3);
    Loader loader(add_map(numbers(10).batch(4), op, 0), {.threads = threads});
    std::int64_t next = 0;
    while (const auto batch = loader.next()) {
      const auto values = batch->values<std::int64_t>();
      ASSERT_EQ(values.size(), batch->rows() * 3);
      for (std::size_t i = 0; i < values.size(); i += 3) EXPECT_EQ(values[i], next++);
    }
    EXPECT_EQ(next, 10);
    EXPECT_EQ(op->calls, 3);
  }
}

TEST(ListOpTest, EveryShareGetsItsRowsOfTheLearnedStep) {
  const auto data = add_map(numbers(10).batch(5), std::make_shared<WidenOp>(std::nullopt, 2), 0);
  std::vector<std::int64_t> seen;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Loader loader(data, {.shares = Shares{.total = 3, .first = rank, .count = 1}});
    const auto batch = loader.next();
    for (const std::uint64_t id : batch->sample_id()) seen.push_back(static_cast<std::int64_t>(id));
  }
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(ListOpTest, ASizeMayDifferFromThatOfTheFirstStep) {
  Loader loader(add_map(numbers(10).batch(4), std::make_shared<WidenOp>(), 0));
  std::vector<Shape> shapes;
  while (const auto batch = loader.next()) shapes.push_back((*batch)[""].shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{4, 4}, {4, 4}, {2, 2}}));
}

TEST(ListOpTest, ASizeThatIsLeftOpenMayDiffer) {
  const auto open = ElementSpec::single(Dtype::i64, {kUnknown});
  Loader loader(add_map(numbers(10).batch(4), std::make_shared<WidenOp>(open), 0));
  std::vector<Shape> shapes;
  while (const auto batch = loader.next()) shapes.push_back((*batch)[""].shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{4, 4}, {4, 4}, {2, 2}}));
}

TEST(ListOpTest, TheShapeIsLearnedFromStreamsInTheSameWay) {
  const auto op = std::make_shared<WidenOp>(std::nullopt, 2);
  const auto even = numbers(20).filter(
      [](const Sample& sample) { return sample.tensor().item<std::int64_t>() % 2 == 0; });
  Loader loader(add_map(even.batch(4), op, 0));
  std::size_t rows = 0;
  while (const auto batch = loader.next()) rows += batch->rows();
  EXPECT_EQ(rows, 10U);
  EXPECT_EQ(op->calls, 3);
}

TEST(ListOpTest, AMapAfterAListOpNeedsADeclaredSpec) {
  const auto data = add_map(numbers(4).batch(2), std::make_shared<WidenOp>(), 0);
  EXPECT_THROW(add_map(data, std::make_shared<WidenOp>(std::nullopt, 1), 0), ConfigError);
}

}  // namespace
}  // namespace penstock
