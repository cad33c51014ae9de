#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "penstock/detail/function.h"
#include "plan/compiler.h"
#include "plan/stages.h"
#include "verb/source.h"
#include "verb/values_for_tests.h"

namespace penstock {
namespace {

/// The stage of a dataset that starts with `source`, as source `ordinal` of its graph.
StagePtr staged_source(std::shared_ptr<const Source> source, const ElementSpec& spec,
                       SourcePlace place) {
  const Dataset dataset = from_source(std::move(source), {.spec = spec});
  Compiler compiler({});
  for (std::uint32_t i = 0; i < place.ordinal; ++i) (void)compiler.next_source(0);
  return compiler.samples(*dataset.node(), place.first_id);
}

StagePtr numbers(SourcePlace place = {}) {
  return staged_source(make_range(0, 100, 1), kNumber, place);
}

TEST(SourceStageTest, RowsHaveTheirIdsAndOneOccurrencePerRound) {
  const Values got =
      values_of(*numbers({.ordinal = 3, .first_id = 50}), {.pass = 9, .round = 4}, {7, 0});
  EXPECT_EQ(got.values, (std::vector<std::int64_t>{7, 0}));
  EXPECT_EQ(got.ids, (Numbers{57, 50}));
  EXPECT_EQ(got.occurrences, (Numbers{4, 4}));
}

TEST(SourceStageTest, AFailureNamesTheSampleAndTheSource) {
  const auto fails_at_two = [](std::uint64_t index) {
    if (index == 2) throw std::runtime_error("two");
    return static_cast<std::int64_t>(index);
  };
  const StagePtr stage = staged_source(make_index(5, detail::make_index_fn(fails_at_two), "five"),
                                       kNumber, {.ordinal = 3, .first_id = 50});
  const Where where = failure(*stage, {4, 2});
  EXPECT_EQ(where.sample, (SampleKey{3, 2}));
  EXPECT_EQ(where.op, "from_index(5, five)");
}

/// Sample i is byte i of this program's file.
class OwnBytes final : public Source {
 public:
  [[nodiscard]] std::string word() const override { return "own_bytes"; }
  [[nodiscard]] std::uint64_t size() const override { return 1ULL << 50; }
  [[nodiscard]] const ElementSpec& spec() const override { return kNumber; }
  [[nodiscard]] std::string describe() const override { return "own_bytes()"; }
  void identify(Digest&) const override {}
  [[nodiscard]] std::string file_of(std::uint64_t) const override { return "/proc/self/exe"; }
  [[nodiscard]] bool has_reads() const override { return true; }
  void reads(std::uint64_t number, std::vector<Read>& reads) const override {
    reads.push_back({"/proc/self/exe", number, 1});
  }
  Result<void> decode(std::span<const std::uint64_t>, std::span<Bytes> bytes, const BlockView& out,
                      const Context&) const override {
    *reinterpret_cast<std::int64_t*>(out.columns[0].data) = static_cast<std::int64_t>(bytes[0][0]);
    return {};
  }
};

TEST(SourceStageTest, BytesAreReadBeforeDecode) {
  const StagePtr stage = staged_source(std::make_shared<OwnBytes>(), kNumber, {});
  EXPECT_EQ(values_of(*stage, {}, {3, 1, 2}).values, (std::vector<std::int64_t>{'F', 'E', 'L'}));
}

TEST(SourceStageTest, AFailedReadNamesTheSampleAndTheFile) {
  const StagePtr stage = staged_source(std::make_shared<OwnBytes>(), kNumber, {});
  const Where where = failure(*stage, {1, 1ULL << 49});
  EXPECT_EQ(where.sample, (SampleKey{0, 1ULL << 49}));
  EXPECT_EQ(where.op, "own_bytes()");
  EXPECT_EQ(where.file, "/proc/self/exe");
}

TEST(SourceStageTest, AFailedMapNamesTheFileOfTheSample) {
  const auto fails = [](std::int64_t) -> std::int64_t { throw std::runtime_error("no"); };
  const auto op = make_column_op(detail::make_column_fn(fails), "");
  const StagePtr stage =
      map_stage(staged_source(std::make_shared<OwnBytes>(), kNumber, {}), op, kNumber, {});
  EXPECT_EQ(failure(*stage, {1}).file, "/proc/self/exe");
}

}  // namespace
}  // namespace penstock
