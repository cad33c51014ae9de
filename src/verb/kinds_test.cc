// Functions that the base classes of verbs implement.
#include "verb/kinds.h"

#include <gmock/gmock.h>

#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

Dataset hinted(const Dataset& data) {
  return data.prefetch({.steps = 2}).with_options({.name = "named"});
}

TEST(KindsTest, AHintChangesNeitherElementsNorDigests) {
  const Dataset plain = tagged(0, 9).take(7).batch(2);
  const Dataset with = hinted(tagged(0, 9).take(7)).batch(2);
  EXPECT_EQ(with.cardinality(), plain.cardinality());
  EXPECT_EQ(with.digests(), plain.digests());
  EXPECT_EQ(hinted(plain).digests(), plain.digests());
  EXPECT_EQ(first_field(hinted(tagged(3, 9)), {}, up_to(9)),
            first_field(tagged(3, 9), {}, up_to(9)));
}

TEST(KindsTest, RequestingStepsFromAVerbOfSamplesIsAnInternalError) {
  const Dataset data = tagged(0, 9).enumerate();
  StepsWalk walk;
  EXPECT_THROW((void)walk.of(*data.node()), InternalError);
  std::vector<LeafProgram> chains;
  Compiler compiler({});
  EXPECT_THROW((void)data.node()->verb->chains(compiler, *data.node(), 0), InternalError);
}

TEST(KindsTest, IdsAreThoseOfTheFirstSourceAndAddUpInConcatenate) {
  const auto ids = [](const Dataset& data) { return data.node()->verb->id_space(*data.node()); };
  EXPECT_EQ(ids(tagged(0, 9).take(3).shuffle().batch(2)), 9U);
  EXPECT_EQ(ids(tagged(0, 9).concatenate(tagged(0, 4).repeat(5))), 13U);
}

TEST(KindsTest, CountsAreWrittenAsUsersWriteThem) {
  EXPECT_EQ(written_count(std::nullopt), -1);
  EXPECT_EQ(written_count(7), 7);
  EXPECT_EQ(count_or_all("take", -1), std::nullopt);
  EXPECT_EQ(count_or_all("take", 7), 7U);
}

TEST(KindsTest, AFunctionWithoutANameCannotBeSerialized) {
  EXPECT_EQ(required_name("filter", "even"), "even");
  EXPECT_THROW((void)required_name("filter", ""), ConfigError);
}

}  // namespace
}  // namespace penstock
