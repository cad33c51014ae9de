// filter and take_while; streams of them are in src/plan/flows_test.cc.
#include <gmock/gmock.h>

#include <stdexcept>

#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

using testing::HasSubstr;

const auto kEven = [](std::uint64_t x) { return x % 2 == 0; };

TEST(FilterTest, AFilterMakesAStreamAndAMaskDoesNot) {
  EXPECT_TRUE(tagged(0, 9).filter(kEven).streamed());
  EXPECT_TRUE(tagged(0, 9).filter(kEven).cardinality().is_unknown());
  const Dataset masked = tagged(0, 9).filter(kEven, {.mask = true});
  EXPECT_FALSE(masked.streamed());
  EXPECT_EQ(masked.cardinality(), Cardinality::of(9));
}

TEST(FilterTest, AMaskMarksTheRowsThatDoNotPass) {
  Scratch scratch;
  const StagePtr stage = stage_of(tagged(0, 9).filter(kEven, {.mask = true}));
  std::vector<std::uint8_t> marks(4, kRowGood);
  Identity identity{scratch.array<std::uint64_t>(4), scratch.array<std::uint64_t>(4)};
  identity.failed = marks.data();
  const ScratchBlock block(stage->spec(), 4, scratch, identity);
  ASSERT_TRUE(stage->produce({{}, Numbers{4, 5, 6, 7}}, block.view(), scratch));
  EXPECT_EQ(marks, (std::vector<std::uint8_t>{kRowGood, kRowMasked, kRowGood, kRowMasked}));
}

TEST(FilterTest, AMaskIsPartOfTheValuesAndAFilterOfTheOrder) {
  const Dataset plain = tagged(0, 9);
  const Dataset masked = plain.filter(kEven, {.name = "even", .mask = true});
  const Dataset filtered = plain.filter(kEven, {.name = "even"});
  EXPECT_EQ(masked.digests().order, plain.digests().order);
  EXPECT_NE(masked.digests().values, plain.digests().values);
  EXPECT_NE(filtered.digests().order, plain.digests().order);
  EXPECT_EQ(filtered.digests().values, plain.digests().values);
}

TEST(FilterTest, BatchesAndWrongPredicatesAreRefused) {
  EXPECT_THAT(refusal([] { return tagged(0, 9).batch(2).filter(kEven); }),
              HasSubstr("put filter before batch"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).batch(2).take_while(kEven); }),
              HasSubstr("put take_while before batch"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).enumerate().filter(kEven); }),
              HasSubstr("takes 1 values"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).filter([](std::uint64_t x) { return x; }); }),
              HasSubstr("a predicate returns bool"));
  EXPECT_THAT(refusal([] { return tagged(0, 9).filter(kEven).filter(kEven, {.mask = true}); }),
              HasSubstr("there is nothing to mask"));
}

TEST(TakeWhileTest, ItIsAStreamWithItsPredicateInTheOrder) {
  const Dataset until = tagged(0, 9).take_while(kEven, {.name = "even"});
  EXPECT_TRUE(until.streamed());
  EXPECT_EQ(order_lines(*until.node(), {}).back(), describe_node(*until.node()));
}

}  // namespace
}  // namespace penstock
