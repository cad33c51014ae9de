#include "penstock/sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "penstock/error.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

Tensor number(std::int64_t value) {
  return Tensor::scalar(value);
}

TEST(SampleTest, FieldsFlattenToPaths) {
  const Sample sample = Sample::dict(
      {{"meta", Sample::dict({{"id", number(1)}, {"pair", Sample::tuple({number(2), number(3)})}})},
       {"image", number(4)}});
  EXPECT_THAT(sample.structure().paths(),
              ElementsAre("image", "meta/id", "meta/pair/0", "meta/pair/1"));
  EXPECT_EQ(sample["image"].item<std::int64_t>(), 4);
  EXPECT_EQ(sample["meta/pair/1"].item<std::int64_t>(), 3);
  EXPECT_EQ(sample.structure().text({"a", "b", "c", "d"}),
            "{image: a, meta: {id: b, pair: (c, d)}}");
}

TEST(SampleTest, ASingleTensorHasTheEmptyPath) {
  const Sample sample = number(5);
  EXPECT_THAT(sample.structure().paths(), ElementsAre(""));
  EXPECT_EQ(sample.tensor().item<std::int64_t>(), 5);
  EXPECT_EQ(sample.structure().text({"x"}), "x");
}

TEST(SampleTest, TheOrderOfKeysDoesNotChangeTheStructure) {
  const Sample one = Sample::dict({{"a", number(1)}, {"b", number(2)}});
  const Sample other = Sample::dict({{"b", number(2)}, {"a", number(1)}});
  EXPECT_EQ(one.structure(), other.structure());
  EXPECT_EQ(other["a"].item<std::int64_t>(), 1);
  EXPECT_NE(one.structure(), Sample::tuple({number(1), number(2)}).structure());
}

TEST(SampleTest, AMissingPathThrowsAndListsTheExistingOnes) {
  const Sample sample = Sample::dict({{"id", number(1)}, {"x", number(2)}});
  EXPECT_THAT([&] { static_cast<void>(sample["y"]); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("\"y\""), HasSubstr("\"id\", \"x\""))));
  EXPECT_THROW(static_cast<void>(sample.tensor()), ConfigError);
  EXPECT_THROW(static_cast<void>(Sample().tensor()), ConfigError);
}

TEST(SampleTest, NamesThatMakePathsAmbiguousThrow) {
  EXPECT_THROW(Sample::dict({{"", number(1)}}), ConfigError);
  const Sample nested = Sample::dict({{"b", number(1)}});
  EXPECT_THROW(Sample::dict({{"a/b", number(1)}, {"a", nested}}), ConfigError);
  EXPECT_THROW(
      Sample::dict({{"c", Sample::tuple({Sample::dict({{"a/b", number(1)}})})}, {"c/0/a", nested}}),
      ConfigError);
  EXPECT_THROW(Sample::dict({{"a", number(1)}, {"b", number(2)}, {"a", number(3)}}), ConfigError);
}

TEST(SampleTest, ANameWithASlashIsOneKey) {
  const Sample sample = Sample::dict({{"image/encoded", number(1)},
                                      {"image", Sample::dict({{"height", number(2)}})},
                                      {"image/", number(3)}});
  EXPECT_THAT(sample.structure().paths(), ElementsAre("image/height", "image/", "image/encoded"));
  EXPECT_EQ(sample["image/encoded"].item<std::int64_t>(), 1);
  EXPECT_EQ(sample["image/height"].item<std::int64_t>(), 2);
}

TEST(SampleTest, EmptyNestsHaveNoFields) {
  EXPECT_THAT(Sample::dict({}).structure().paths(), IsEmpty());
  EXPECT_EQ(Sample::tuple({}).structure().text({}), "()");
}

TEST(SampleTest, AssembleRejectsAWrongNumberOfLeaves) {
  const Structure pair = Structure::tuple({{}, {}});
  EXPECT_EQ(Sample::assemble(pair, {number(1), number(2)})["1"].item<std::int64_t>(), 2);
  EXPECT_THROW(Sample::assemble(pair, {number(1)}), ConfigError);
  EXPECT_THROW(Sample::assemble(pair, {number(1), number(2), number(3)}), ConfigError);
}

}  // namespace
}  // namespace penstock
