#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "base/json.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "source/source.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::vector<std::int64_t> values_at(const Source& source,
                                    const std::vector<std::uint64_t>& numbers) {
  Scratch scratch;
  const ScratchBlock out(source.spec(), numbers.size(), scratch);
  EXPECT_TRUE(source.decode(numbers, {}, out.view(), scratch).ok());
  const auto column = Block(out.view()).column<std::int64_t>();
  return {column.begin(), column.end()};
}

/// All of a small range.
std::vector<std::int64_t> all_of(std::int64_t start, std::int64_t stop, std::int64_t step) {
  const auto source = make_range(start, stop, step);
  std::vector<std::uint64_t> numbers(source->size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  return values_at(*source, numbers);
}

TEST(RangeTest, CountsUpAndDownAndStopsBeforeStop) {
  EXPECT_THAT(all_of(0, 3, 1), ElementsAre(0, 1, 2));
  EXPECT_THAT(all_of(-4, 5, 4), ElementsAre(-4, 0, 4));
  EXPECT_THAT(all_of(-4, 4, 4), ElementsAre(-4, 0));
  EXPECT_THAT(all_of(3, 0, -1), ElementsAre(3, 2, 1));
  EXPECT_THAT(all_of(5, -5, -4), ElementsAre(5, 1, -3));
}

TEST(RangeTest, IsEmptyIfTheStepLeadsAway) {
  EXPECT_THAT(all_of(3, 3, 1), IsEmpty());
  EXPECT_THAT(all_of(3, 0, 1), IsEmpty());
  EXPECT_THAT(all_of(0, 3, -1), IsEmpty());
  EXPECT_THAT(all_of(kMax, kMin, 1), IsEmpty());
  EXPECT_THROW(make_range(0, 3, 0), ConfigError);
}

TEST(RangeTest, CoversTheWholeOf64Bits) {
  const auto up = make_range(kMin, kMax, 1);
  EXPECT_EQ(up->size(), UINT64_MAX);
  EXPECT_THAT(values_at(*up, {0, std::uint64_t{1} << 63, UINT64_MAX - 1}),
              ElementsAre(kMin, 0, kMax - 1));
  const auto down = make_range(kMax, kMin, -1);
  EXPECT_EQ(down->size(), UINT64_MAX);
  EXPECT_THAT(values_at(*down, {0, UINT64_MAX - 1}), ElementsAre(kMax, kMin + 1));
  EXPECT_THAT(all_of(kMin, kMax, kMax), ElementsAre(kMin, -1, kMax - 1));
  EXPECT_THAT(all_of(kMax, kMin, kMin), ElementsAre(kMax, -1));
  EXPECT_THAT(all_of(kMin, kMin + 1, kMax), ElementsAre(kMin));
}

TEST(RangeTest, ItsArgumentsAreItsIdentity) {
  const auto source = make_range(1, 10, 2);
  EXPECT_EQ(source->describe(), "range(1, 10, 2)");
  EXPECT_EQ(source->arguments().dump(), R"({"start":1,"step":2,"stop":10})");
  Digest digest;
  Digest other;
  source->identify(digest);
  make_range(1, 10, 3)->identify(other);
  EXPECT_NE(digest.value(), other.value());
}

}  // namespace
}  // namespace penstock
