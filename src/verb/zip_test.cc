#include "verb/staged_for_tests.h"

namespace penstock {
namespace {

TEST(ZipTest, RowsHaveTheIdsOfTheFirstPart) {
  const Dataset zipped = Dataset::zip({tagged(100, 9), tagged(200, 9)});
  const Got got = ask(zipped, {.pass = 0, .round = 3}, {5, 1});
  EXPECT_EQ(got.fields, (std::vector<Numbers>{{105, 101}, {205, 201}}));
  EXPECT_EQ(got.ids, (Numbers{105, 101}));
  EXPECT_EQ(got.occurrences, (Numbers{3, 3}));
}

TEST(ZipTest, PartsOfUnknownSpecAreZippedAsSamples) {
  Scratch scratch;
  const StagePtr stage = stage_of(Dataset::zip({tagged(100, 9), tagged(200, 9, nullptr, false)}));
  const ScratchBlock block(ElementSpec::unknown(), 2, scratch);
  const Numbers positions = {5, 1};
  ASSERT_TRUE(stage->produce({{}, positions}, block.view(), scratch));
  for (std::size_t row = 0; row < 2; ++row) {
    const Sample& sample = block.view().samples[row];
    EXPECT_EQ(sample["0"].item<std::uint64_t>(), 100 + positions[row]);
    EXPECT_EQ(sample["1"].item<std::uint64_t>(), 200 + positions[row]);
    EXPECT_EQ(block.view().identity.sample_id[row], 100 + positions[row]);
  }
}

TEST(EnumerateTest, TheFirstFieldIsThePosition) {
  const Got got = ask(tagged(100, 9).enumerate(), {}, {5, 1});
  EXPECT_EQ(got.fields, (std::vector<Numbers>{{5, 1}, {105, 101}}));
  EXPECT_EQ(got.ids, (Numbers{105, 101}));
}

}  // namespace
}  // namespace penstock
