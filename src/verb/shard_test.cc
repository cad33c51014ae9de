#include <gmock/gmock.h>

#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

TEST(ShardTest, PositionsAreMultipliedAndMoved) {
  EXPECT_EQ(first_field(tagged(0, 13).shard(5, 2), {}, {2, 0, 1}), (Numbers{12, 2, 7}));
}

TEST(ShardTest, AllShardsTogetherHaveEveryElementOnce) {
  for (std::int64_t count = 1; count < 8; ++count) {
    Numbers seen;
    for (std::int64_t index = 0; index < count; ++index) {
      const Dataset shard = tagged(0, 12).shard(count, index);
      const Numbers part = first_field(shard, {}, up_to(shard.cardinality().count()));
      seen.insert(seen.end(), part.begin(), part.end());
    }
    std::ranges::sort(seen);
    EXPECT_EQ(seen, up_to(12)) << count << " shards";
  }
}

TEST(ShardTest, CountAndIndexMustBeInRange) {
  EXPECT_THAT(refusal([] { return tagged(0, 9).shard(0, 0); }), HasSubstr("must be positive"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).shard(3, 3); }), HasSubstr("in 0..2, got 3"));
}

}  // namespace
}  // namespace penstock
