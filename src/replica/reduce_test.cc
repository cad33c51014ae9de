#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penstock/strategy.h"

namespace penstock::detail {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <typename T>
Part part(T value, std::uint64_t count) {
  Part made = part_of(value, count);
  made.value = made.value->kept();
  return made;
}

TEST(ReduceTest, ASumIsAddedInReplicaOrderAndEmptySharesAreZero) {
  const std::vector<Part> parts{part(1e16, 1), Part{}, part(1.0, 1), part(-1e16, 1)};
  EXPECT_EQ(reduce_parts(Reduce::sum, parts).item<double>(), (1e16 + 1.0) - 1e16);
  const std::vector<Part> integers{part(std::int64_t{1} << 60, 1), part(std::int64_t{-3}, 1)};
  EXPECT_EQ(reduce_parts(Reduce::sum, integers).item<std::int64_t>(), (std::int64_t{1} << 60) - 3);
}

TEST(ReduceTest, FloatsAreAddedInDoubleAndRoundedOnce) {
  const std::vector<Part> parts{part(16777216.0F, 1), part(1.0F, 1), part(1.0F, 1)};
  EXPECT_EQ(reduce_parts(Reduce::sum, parts).item<float>(), 16777218.0F);
}

TEST(ReduceTest, TheMeanOfPlainValuesWeighsEachByItsSamples) {
  const std::vector<Part> parts{part(2.0, 3), Part{}, part(4.0, 1)};
  EXPECT_EQ(reduce_parts(Reduce::mean, parts).item<double>(), 2.5);
}

TEST(ReduceTest, TheMeanOfCountedSumsDividesOnce) {
  const std::vector<Part> parts{part(Counted<double>{6.0, 3}, 99), Part{},
                                part(Counted<double>{4.0, 1}, 99)};
  EXPECT_EQ(reduce_parts(Reduce::mean, parts).item<double>(), 2.5);
  EXPECT_EQ(reduce_parts(Reduce::sum, parts).item<double>(), 10.0);
}

TEST(ReduceTest, AShareOfPaddingAloneDoesNotMakeTheMeanNan) {
  const std::vector<Part> parts{part(2.0, 3), part(std::nan(""), 0)};
  EXPECT_EQ(reduce_parts(Reduce::mean, parts).item<double>(), 2.0);
}

TEST(ReduceTest, TheMeanOfOneReplicaIsItsValueToTheLastBit) {
  for (const std::uint64_t count : {3U, 7U, 49U}) {
    const std::vector<Part> parts{part(0.1, count), Part{}};
    EXPECT_EQ(reduce_parts(Reduce::mean, parts).item<double>(), 0.1);
  }
}

TEST(ReduceTest, TheMeanOfNothingAndOfIntegersThrows) {
  const std::vector<Part> none(2);
  EXPECT_THAT([&] { (void)reduce_parts(Reduce::mean, none); },
              ThrowsMessage<ConfigError>(HasSubstr("no replica has a sample")));
  EXPECT_TRUE(reduce_parts(Reduce::sum, none).empty());
  const std::vector<Part> integers{part(std::int64_t{1}, 1)};
  EXPECT_THAT([&] { (void)reduce_parts(Reduce::mean, integers); },
              ThrowsMessage<ConfigError>(HasSubstr("i64")));
  const std::vector<Part> bytes{Part{Tensor::scalar(std::uint8_t{1}), 1, false, nullptr}};
  EXPECT_THAT([&] { (void)reduce_parts(Reduce::sum, bytes); },
              ThrowsMessage<ConfigError>(HasSubstr("u8")));
}

TEST(ReduceTest, ValuesOfDifferentShapesAreReportedByReplica) {
  const std::vector<Part> parts{Part{}, part(std::vector<double>{1, 2}, 1),
                                part(std::vector<double>{1, 2, 3}, 1)};
  EXPECT_THAT([&] { (void)reduce_parts(Reduce::sum, parts); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("replica 1 returned f64[2]"),
                                               HasSubstr("replica 2 returned f64[3]"))));
}

TEST(ReduceTest, AlongAnAxisTheMeanDividesByAllRows) {
  const std::vector<Part> rows{part(std::vector<double>{1, 2, 3}, 3), Part{},
                               part(std::vector<double>{6}, 1)};
  EXPECT_EQ(reduce_parts(Reduce::mean, rows, 0).item<double>(), 3.0);
  EXPECT_EQ(reduce_parts(Reduce::sum, rows, -1).item<double>(), 12.0);
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::vector<Part> tables{part(Tensor::of(std::span<const float>(values), {2, 3}), 2),
                                 part(Tensor::of(std::span<const float>(values), {2, 3}), 2)};
  const Tensor columns = reduce_parts(Reduce::mean, tables, 0);
  EXPECT_THAT(columns.values<float>(), ElementsAre(2.5F, 3.5F, 4.5F));
  EXPECT_THAT(columns.shape(), ElementsAre(3));
  EXPECT_THAT(reduce_parts(Reduce::sum, tables, 1).values<float>(), ElementsAre(12.0F, 30.0F));
  EXPECT_THAT([&] { (void)reduce_parts(Reduce::sum, tables, 2); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("axis 2"), HasSubstr("[2, 3]"))));
}

TEST(ReduceTest, RowsOfPaddingAreNeitherAddedNorCountedNorGathered) {
  const ShareCount padded{3, 2, {1, 0, 1}};
  std::vector<Part> parts{part(std::vector<double>{1, 100, 2}, 2), part(std::vector<double>{6}, 1)};
  parts[0].share = &padded;
  EXPECT_EQ(reduce_parts(Reduce::mean, parts, 0).item<double>(), 3.0);
  EXPECT_THAT(gather_parts(parts, 0).values<double>(), ElementsAre(1, 2, 6));
}

TEST(ReduceTest, SumsOverRowsDoNotDependOnTheCut) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(std::sin(i) * 1e3);
  const std::vector<Part> one{part(values, 100)};
  const double expected = reduce_parts(Reduce::sum, one, 0).item<double>();
  for (const std::ptrdiff_t cut : {1, 37, 99}) {
    const std::vector<Part> two{part(std::vector<double>(values.begin(), values.begin() + cut), 1),
                                part(std::vector<double>(values.begin() + cut, values.end()), 1)};
    EXPECT_EQ(reduce_parts(Reduce::sum, two, 0).item<double>(), expected);
  }
}

TEST(ReduceTest, GatherPutsReplicasOneAfterTheOtherAlongAnAxis) {
  const std::vector<Part> numbers{part(1.0, 1), Part{}, part(2.0, 1)};
  EXPECT_THAT(gather_parts(numbers, 0).values<double>(), ElementsAre(1.0, 2.0));
  const std::vector<std::int64_t> values{1, 2, 3, 4};
  const std::vector<Part> tables{
      part(Tensor::of(std::span<const std::int64_t>(values), {2, 2}), 2),
      part(Tensor::of(std::span<const std::int64_t>(values).first(2), {2, 1}), 2)};
  const Tensor wide = gather_parts(tables, 1);
  EXPECT_THAT(wide.shape(), ElementsAre(2, 3));
  EXPECT_THAT(wide.values<std::int64_t>(), ElementsAre(1, 2, 1, 3, 4, 2));
  EXPECT_THROW((void)gather_parts(tables, 0), ConfigError);
  EXPECT_TRUE(gather_parts(std::vector<Part>(2), 0).empty());
}

}  // namespace
}  // namespace penstock::detail
