// Rows of streams: order, ids, occurrences, and resuming at any position.
#include "plan/flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "order/permutation.h"
#include "penstock/dataset.h"
#include "plan/number_streams_for_tests.h"
#include "plan/program.h"
#include "plan/stages.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<std::int64_t>;

struct Rows {
  Values values;  // the first leaf of each row
  std::vector<std::uint64_t> ids;
  std::vector<std::uint64_t> occurrences;
  std::vector<std::string> texts;  // all of it
};

/// Pulls from one cursor.
class Puller {
 public:
  explicit Puller(const Flow& flow, Turn turn = {0, 0}) : flow_(flow), cursor_(flow.open(turn)) {}

  /// False if fewer rows arrived than were requested.
  bool pull(std::size_t wanted, Rows& to) {
    RowBuffer buffer(flow_.spec());
    buffer.reserve(wanted);
    const BlockView view = buffer.rows(0, wanted);
    Pulling pulling{scratch_, failures};
    auto got = cursor_->pull(view, pulling);
    if (!got) got.failure().raise();
    for (std::size_t row = 0; row < *got; ++row) {
      const Sample sample = read_row(view, row);
      to.ids.push_back(view.identity.sample_id[row]);
      to.occurrences.push_back(view.identity.occurrence[row]);
      to.values.push_back(sample.leaves().front().item<std::int64_t>());
      to.texts.push_back(std::to_string(to.ids.back()) + "*" +
                         std::to_string(to.occurrences.back()) + "=");
      for (const Tensor& leaf : sample.leaves())
        to.texts.back() += std::to_string(leaf.item<std::int64_t>()) + ",";
    }
    return *got == wanted;
  }
  Rows rest() {
    Rows rows;
    while (pull(7, rows)) {
    }
    return rows;
  }
  Anchor save() { return saved(*cursor_); }
  void restore(const Anchor& anchor) { penstock::restore(*cursor_, anchor, {scratch_, failures}); }

  RowFailures* failures = nullptr;

 private:
  const Flow& flow_;
  CursorPtr cursor_;
  Scratch scratch_;
};

FlowPtr flow_of(const Dataset& dataset) {
  return compile_flow(*dataset.node(), {});
}

Rows rows_of(const Dataset& dataset, Turn turn = {0, 0}) {
  const FlowPtr flow = flow_of(dataset);
  return Puller(*flow, turn).rest();
}

Dataset samples(std::int64_t count) {
  return Dataset::from_generator([count] {
    return [i = std::int64_t{0}, count]() mutable -> std::optional<Sample> {
      if (i == count) return std::nullopt;
      return Sample(Tensor::scalar(i++));
    };
  });
}

Dataset rising(std::int64_t first, std::int64_t count) {
  return Dataset::range(first, first + count);
}

const auto kEven = [](std::int64_t x) { return x % 2 == 0; };
const auto kTens = [](std::int64_t x) { return rising(10 * x, x); };  // x rows from 10 x on

struct Case {
  std::string name;
  Dataset dataset;
  Values values;  // of turn (0, 0)
};

std::vector<Case> cases() {
  const FlatMapOptions number{.spec = ElementSpec::single(Dtype::i64)};
  return {
      {"generator", generated(4), {0, 1, 2, 3}},
      {"nothing", generated(0), {}},
      {"cursor", counted(3), {0, 1, 2}},
      {"samples", samples(3), {0, 1, 2}},
      {"map", generated(3).map([](std::int64_t x) { return x * x; }).filter(kEven), {0, 4}},
      {"filter", generated(7).filter(kEven), {0, 2, 4, 6}},
      {"filter all", generated(7).filter([](std::int64_t) { return false; }), {}},
      {"filter indexed", Dataset::range(5).filter(kEven), {0, 2, 4}},
      {"filter samples",
       samples(4).filter([](const Sample& s) { return s.tensor().item<std::int64_t>() != 2; }),
       {0, 1, 3}},
      {"take_while", generated(9).take_while([](std::int64_t x) { return x < 4; }), {0, 1, 2, 3}},
      {"take_while nothing", generated(3).take_while([](std::int64_t) { return false; }), {}},
      {"take", generated(9).take(3), {0, 1, 2}},
      {"take all", generated(2).take(-1), {0, 1}},
      {"skip", counted(5).skip(3), {3, 4}},
      {"skip all", generated(2).skip(-1), {}},
      {"shard", generated(8).shard(3, 1), {1, 4, 7}},
      {"enumerate", generated(9).filter(kEven).enumerate(), {0, 1, 2, 3, 4}},
      {"repeat", generated(2).repeat(3), {0, 1, 0, 1, 0, 1}},
      {"repeat nothing", generated(0).repeat(), {}},
      {"concatenate", generated(2).concatenate(Dataset::range(2)), {0, 1, 0, 1}},
      {"concatenate others", samples(2).concatenate(generated(2)), {0, 1, 0, 1}},
      {"zip", Dataset::zip({generated(3), counted(9)}), {0, 1, 2}},
      {"zip one ends early", Dataset::zip({generated(9), Dataset::range(2)}), {0, 1}},
      {"flat_map", generated(4).flat_map(kTens), {10, 20, 21, 30, 31, 32}},
      {"flat_map typed", generated(4).flat_map(kTens, number), {10, 20, 21, 30, 31, 32}},
      {"flat_map of nothing", generated(3).flat_map([](std::int64_t) { return generated(0); }), {}},
      {"flat_map of streams",
       generated(3).flat_map([](std::int64_t x) { return counted(x); }),
       {0, 0, 1}},
      {"interleave",
       rising(1, 4).interleave([](std::int64_t x) { return rising(10 * x, x); }, {.cycle = 2}),
       {10, 20, 21, 30, 31, 40, 32, 41, 42, 43}},
      {"unbatch",
       Dataset::from_generator([] {
         return [i = 0]() mutable -> std::optional<Sample> {
           if (i == 4) return std::nullopt;
           ++i;
           return Sample(Tensor::of(Values(static_cast<std::size_t>(i % 3), i)));
         };
       }).unbatch(),
       {1, 2, 2, 4}},
      {"batch and unbatch", generated(5).batch(2).unbatch(), {0, 1, 2, 3, 4}},
      {"batch, map, unbatch",
       generated(5).batch(2, {.tail = Tail::drop}).map([](std::int64_t x) { return -x; }).unbatch(),
       {0, -1, -2, -3}},
      {"many",
       generated(12)
           .filter(kEven)
           .flat_map([](std::int64_t x) { return rising(x, 2).repeat(2); })
           .skip(2)
           .take(9)
           .shard(2, 0),
       {0, 2, 2, 4, 4}},
  };
}

TEST(FlowsTest, RowsArriveInOrder) {
  for (const Case& each : cases())
    EXPECT_EQ(rows_of(each.dataset).values, each.values) << each.name;
}

/// A resumed cursor delivers the same rows, for any sizes of pulls before and after.
void check_every_position(const Dataset& dataset, Turn turn, std::mt19937& draw) {
  const FlowPtr flow = flow_of(dataset);
  const Rows whole = Puller(*flow, turn).rest();
  for (std::size_t at = 0; at <= whole.texts.size(); ++at) {
    Puller before(*flow, turn);
    Rows rows;
    while (rows.texts.size() < at)
      ASSERT_TRUE(before.pull(1 + draw() % (at - rows.texts.size()), rows));
    const Anchor anchor = before.save();
    Puller after(*flow, turn);
    after.restore(anchor);
    ASSERT_EQ(after.save(), anchor) << "at " << at;
    while (after.pull(1 + draw() % 9, rows)) {
    }
    ASSERT_EQ(rows.texts, whole.texts) << "restored at " << at;
    Rows going_on;
    while (before.pull(1 + draw() % 9, going_on)) {
    }
    ASSERT_EQ(going_on.texts.size(), whole.texts.size() - at) << "saving changes nothing";
  }
}

TEST(FlowsTest, RestoreAtEveryPositionDeliversTheRest) {
  std::mt19937 draw(7);  // NOLINT: the same each time
  const auto shuffled = [](const Dataset& in, std::uint64_t window, bool reshuffle) {
    return in.shuffle({.seed = 3, .reshuffle_each_epoch = reshuffle, .window = window});
  };
  std::vector<Case> all = cases();
  for (const Dataset& in : {generated(11), counted(11), samples(11), generated(23).filter(kEven),
                            generated(5).flat_map(kTens)}) {
    all.push_back({"window 4", shuffled(in, 4, true), {}});
    all.push_back({"window 100", shuffled(in, 100, false), {}});
    all.push_back({"windows of windows", shuffled(shuffled(in, 3, true), 5, true), {}});
    all.push_back({"repeat", shuffled(in, 4, true).repeat(2), {}});
    all.push_back(
        {"interleave",
         in.take(4).interleave(
             [](const Sample& s) { return counted(s.tensor().item<std::int64_t>() % 5).repeat(2); },
             {.cycle = 3, .block = 2}),
         {}});
    all.push_back(
        {"drawn", in.filter([](const Sample&, Rng& rng) { return rng.integer(2) == 0; }), {}});
  }
  for (const Case& each : all) {
    SCOPED_TRACE(each.name + "\n" + each.dataset.describe());
    check_every_position(each.dataset, {0, 0}, draw);
    check_every_position(each.dataset, {1, 2}, draw);
    check_every_position(each.dataset.repeat(2), {0, 1}, draw);
  }
}

TEST(FlowsTest, InterleaveEqualsTfData) {
  const Dataset example = Dataset::range(1, 6).interleave(
      [](std::int64_t x) { return Dataset::from_tensors(Tensor::scalar(x)).repeat(6); },
      {.cycle = 2, .block = 4});
  EXPECT_THAT(rows_of(example).values, ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3,
                                                   4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5));
  std::mt19937 draw(5);  // NOLINT: the same each time
  check_every_position(example, {0, 0}, draw);
}

/// The definition, one row at a time.
Values interleaved(const std::vector<Values>& inputs, std::size_t cycle, std::size_t block) {
  Values out;
  std::vector<std::optional<std::pair<std::size_t, std::size_t>>> slots(cycle);
  std::size_t next = 0;
  std::size_t slot = 0;
  std::size_t taken = 0;
  const auto advance = [&] {
    slot = (slot + 1) % cycle;
    taken = 0;
  };
  while (true) {
    auto& here = slots[slot];
    if (!here && next < inputs.size()) {
      here = {next++, 0};
    } else if (!here) {
      if (std::ranges::none_of(slots, [](const auto& open) { return open.has_value(); }))
        return out;
      advance();
    } else if (here->second < inputs[here->first].size()) {
      out.push_back(inputs[here->first][here->second++]);
      if (++taken == block) advance();
    } else {
      here.reset();
      advance();
    }
  }
}

TEST(FlowsTest, InterleaveOfAnyShapeMatchesItsDefinition) {
  std::mt19937 draw(11);  // NOLINT: the same each time
  for (int trial = 0; trial < 300; ++trial) {
    const bool is_long = trial % 10 == 7;  // longer than the rows computed in advance
    std::vector<Values> inputs(draw() % 8);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::uint64_t k = 0, rows = draw() % (is_long ? 700 : 12); k < rows; ++k)
        inputs[i].push_back(static_cast<std::int64_t>(1000 * i + k));
    const std::uint64_t cycle = 1 + draw() % 5;
    const std::uint64_t block = 1 + draw() % 4;
    const Dataset dataset = generated(static_cast<std::int64_t>(inputs.size()))
                                .interleave(
                                    [inputs](std::int64_t x) {
                                      const auto rows = inputs[static_cast<std::size_t>(x)].size();
                                      return rising(1000 * x, static_cast<std::int64_t>(rows));
                                    },
                                    {.cycle = cycle, .block = block});
    const FlowPtr flow = flow_of(dataset);
    Puller puller(*flow);
    Rows rows;
    while (puller.pull(1 + draw() % (is_long ? 300 : 30), rows)) {
    }
    ASSERT_EQ(rows.values, interleaved(inputs, cycle, block)) << cycle << " " << block;
    if (trial % 20 == 0) check_every_position(dataset, {0, 0}, draw);
  }
}

TEST(FlowsTest, LentRowsEqualPulledRows) {
  const Dataset dataset = rising(1000, 2000).map([](std::int64_t x) { return 3 * x; });
  const FlowPtr flow = flow_of(dataset);
  const CursorPtr cursor = flow->open({0, 4});
  Scratch scratch;
  Pulling pulling{scratch};
  RowBuffer buffer(flow->spec());
  buffer.reserve(40);
  std::mt19937 draw(3);  // NOLINT: the same each time
  for (std::uint64_t position = 0; position < 2000;) {
    const std::size_t rows = std::min<std::uint64_t>(1 + draw() % 40, 2000 - position);
    // Timing decides whether rows are computed in advance; the values do not depend on it.
    LentRows got = cursor->lend(rows);
    const BlockView view = buffer.rows(0, rows);
    if (got.block == nullptr) {
      ASSERT_EQ(saved(*cursor).numbers, std::vector{position});
      ASSERT_EQ(*cursor->pull(view, pulling), rows);
      got.block = &view;
    }
    for (std::size_t row = 0; row < rows; ++row, ++position) {
      ASSERT_EQ(read_row(*got.block, got.first + row).leaves().front().item<std::int64_t>(),
                static_cast<std::int64_t>(3 * (1000 + position)));
      ASSERT_EQ(got.block->identity.sample_id[got.first + row], position);
      ASSERT_EQ(got.block->identity.occurrence[got.first + row], 4U);
    }
    ASSERT_EQ(saved(*cursor).numbers, std::vector{position});
  }
  EXPECT_EQ(cursor->lend(1).block, nullptr);
}

TEST(FlowsTest, EachWindowIsPermutedSeparately) {
  for (const bool reshuffle : {true, false}) {
    const Dataset dataset =
        generated(10).shuffle({.seed = 9, .reshuffle_each_epoch = reshuffle, .window = 4});
    const Turn turn{2, 3};
    Values expected;
    for (std::uint64_t window = 0; window < 3; ++window) {
      const Turn key = reshuffle ? turn : Turn{};
      const Permutation order(window == 2 ? 2 : 4,
                              {9 + window * 0x9E3779B97F4A7C15ULL, key.pass, key.round});
      for (std::uint64_t i = 0; i < order.size(); ++i)
        expected.push_back(static_cast<std::int64_t>(4 * window + order(i)));
    }
    EXPECT_EQ(rows_of(dataset, turn).values, expected);
  }
}

TEST(FlowsTest, RemainingRowsKeepTheirIds) {
  EXPECT_THAT(rows_of(generated(7).filter(kEven)).ids, ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(rows_of(generated(5).skip(1).shard(2, 1)).ids, ElementsAre(2, 4));
  EXPECT_THAT(rows_of(Dataset::range(10, 15).filter(kEven)).ids, ElementsAre(0, 2, 4));
  EXPECT_THAT(rows_of(Dataset::zip({generated(4).skip(2), Dataset::range(9)})).ids,
              ElementsAre(2, 3));
}

TEST(FlowsTest, RowsOfAnExpandedElementGetNewIds) {
  EXPECT_THAT(rows_of(generated(4).skip(1).flat_map(kTens)).ids, ElementsAre(0, 1, 2, 3, 4, 5));
  const Dataset pairs =
      generated(3).map([](std::int64_t x) { return std::tuple(x, x); }).map([](const Sample& s) {
        return Sample(Tensor::of(Values(2, s["0"].item<std::int64_t>())));
      });
  EXPECT_THAT(rows_of(pairs.unbatch()).ids, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(FlowsTest, IdsAfterAStreamStartAfterAReservedRange) {
  EXPECT_THAT(rows_of(generated(1).concatenate(generated(1)).concatenate(Dataset::range(1))).ids,
              ElementsAre(0, kStreamIds, 2 * kStreamIds));
  EXPECT_THAT(rows_of(Dataset::range(3).filter(kEven).concatenate(generated(1))).ids,
              ElementsAre(0, 2, 3));
  EXPECT_THAT(rows_of(generated(2).flat_map(kTens).concatenate(generated(1))).ids,
              ElementsAre(0, kStreamIds));
}

TEST(FlowsTest, OccurrencesCountTheRounds) {
  EXPECT_THAT(rows_of(generated(2).repeat(3)).occurrences, ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(rows_of(generated(1).repeat(2).repeat(2)).occurrences, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(rows_of(generated(3).flat_map(kTens), {0, 4}).occurrences, Each(4U));
  EXPECT_THAT(rows_of(Dataset::range(1).repeat(3).filter(kEven)).occurrences, ElementsAre(0, 1, 2));
}

TEST(FlowsTest, TheDatasetOfAnElementHasItsOwnTurn) {
  const auto started = std::make_shared<std::vector<std::pair<std::uint64_t, std::uint64_t>>>();
  const Dataset dataset = generated(3).flat_map([started](std::int64_t) {
    return Dataset::from_generator([started](GeneratorStart start) {
      started->emplace_back(start.epoch, start.round);
      return Counter{1};
    });
  });
  rows_of(dataset, {5, 2});
  const std::uint64_t first = 2ULL << 32;
  EXPECT_THAT(*started, ElementsAre(std::pair(5U, first), std::pair(5U, first + 1),
                                    std::pair(5U, first + 2)));
}

TEST(FlowsTest, AnEndlessRepeatEndsAfterARoundWithoutRows) {
  const Dataset dies = Dataset::from_generator(
      [](GeneratorStart start) { return Counter{start.round < 3 ? 2 : 0}; });
  EXPECT_EQ(rows_of(dies.repeat()).values, (Values{0, 1, 0, 1, 0, 1}));
}

// Only requested elements are pulled

struct Counted {
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  [[nodiscard]] Dataset generator() const {
    return Dataset::from_generator([calls = calls] {
      return [calls, i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
        ++*calls;
        return i++;
      };
    });
  }
};

TEST(FlowsTest, OnlyRequestedElementsArePulled) {
  using Verb = std::function<Dataset(const Dataset&)>;
  const auto each = [](const std::function<int(int)>& needed, const Verb& verb) {
    for (const int rows : {0, 1, 2, 5, 9, 40}) {
      for (const int at_once : {1, 3, 40}) {
        const Counted counted;
        const Dataset dataset = verb(counted.generator());
        const FlowPtr flow = flow_of(dataset);
        Puller puller(*flow);
        Rows got;
        for (int left = rows; left > 0; left -= std::min(left, at_once))
          puller.pull(static_cast<std::size_t>(std::min(left, at_once)), got);
        EXPECT_EQ(*counted.calls, needed(rows)) << dataset.describe() << rows << " rows";
      }
    }
  };
  const auto same = [](int rows) { return rows; };
  each(same, [](const Dataset& in) { return in; });
  each(same, [](const Dataset& in) { return in.map([](std::int64_t x) { return x; }); });
  each(same, [](const Dataset& in) { return in.enumerate(); });
  each(same, [](const Dataset& in) { return in.repeat(2); });
  each(same, [](const Dataset& in) { return Dataset::zip({in, Dataset::range(100)}); });
  each(same, [](const Dataset& in) { return in.take_while([](std::int64_t) { return true; }); });
  each([](int rows) { return std::min(rows, 5); }, [](const Dataset& in) { return in.take(5); });
  each([](int rows) { return std::min(rows, 5); },
       [](const Dataset& in) { return Dataset::zip({in.take(5), Dataset::range(100)}); });
  each([](int rows) { return std::min(rows, 4); },
       [](const Dataset& in) { return in.take_while([](std::int64_t x) { return x < 3; }); });
  each([](int rows) { return rows == 0 ? 0 : rows + 3; },
       [](const Dataset& in) { return in.skip(3); });
  each([](int rows) { return std::max(0, 2 * rows - 1); },
       [](const Dataset& in) { return in.filter(kEven); });
  each([](int rows) { return rows == 0 ? 0 : 2 + 3 * (rows - 1); },
       [](const Dataset& in) { return in.shard(3, 1); });
  each([](int rows) { return (rows + 3) / 4 * 4; },
       [](const Dataset& in) { return in.shuffle({.window = 4}); });
  each([](int rows) { return (rows + 2) / 3; },
       [](const Dataset& in) {
         return in.flat_map([](std::int64_t) { return Dataset::range(3); });
       });
}

TEST(FlowsTest, OnlyRequestedRowsOfAnOpenedDatasetArePulled) {
  for (const std::size_t rows : {1U, 2U, 7U, 24U, 100U}) {
    for (const std::uint64_t block : {1U, 2U, 5U}) {
      const Counted counted;
      const Dataset dataset = Dataset::range(3).interleave(
          [&counted](std::int64_t) { return counted.generator(); }, {.cycle = 3, .block = block});
      const FlowPtr flow = flow_of(dataset);
      Puller puller(*flow);
      Rows got;
      puller.pull(rows, got);
      EXPECT_EQ(*counted.calls, static_cast<int>(rows)) << "blocks of " << block;
    }
  }
}

}  // namespace
}  // namespace penstock
