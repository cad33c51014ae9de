#include "order/steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::size_t kAll = 1000;   // more steps than any finite tree here has
constexpr std::size_t kPrefix = 50;  // of an endless one
constexpr Turn kTurn{.pass = 3, .round = 2};

struct Counted {
  std::uint32_t leaf;
  Groups groups;
  std::uint64_t rounds;
};

/// Steps, and the same as an explicit list: `list(turn, limit)` returns the first `limit` steps.
struct Tree {
  Steps steps;
  std::function<std::vector<Place>(Turn, std::size_t limit)> list;
  bool endless = false;
  bool in_order = true;
  std::optional<Counted> single = {};
  std::string words = {};
};

constexpr Tail kTails[] = {Tail::short_, Tail::drop, Tail::even,
                           Tail::wrap,   Tail::pad,  Tail::strict};
constexpr const char* kTailWords[] = {"", " drop", " even", " wrap", " pad", " strict"};

/// Samples of the next step if `left` remain; nothing if the step is dropped.
std::optional<std::uint64_t> next_size(std::uint64_t left, Groups groups) {
  if (left >= groups.batch && groups.tail != Tail::even) return groups.batch;
  switch (groups.tail) {
    case Tail::drop:
      return std::nullopt;
    case Tail::wrap:
      return groups.batch;
    case Tail::even: {
      if (left == kEndless) return groups.batch;
      const std::uint64_t steps_left = (left + groups.batch - 1) / groups.batch;
      return (left + steps_left - 1) / steps_left;
    }
    default:
      return left;
  }
}

Tree leaf(std::uint32_t number, Groups groups) {
  auto list = [=](Turn turn, std::size_t limit) {
    std::vector<Place> places;
    const bool wraps = groups.tail == Tail::wrap && groups.count != kEndless;
    const std::uint64_t slots = groups.tail == Tail::pad ? groups.batch : 0;
    for (std::uint64_t first = 0; first < groups.count && places.size() < limit;) {
      const auto size =
          next_size(groups.count == kEndless ? kEndless : groups.count - first, groups);
      if (!size) break;
      places.push_back({number, turn, first, *size, wraps ? groups.count : 0, slots});
      first += *size;
    }
    return places;
  };
  return {Steps::leaf(number, groups),
          list,
          groups.count == kEndless,
          true,
          Counted{number, groups, 1},
          fmt::format("{} by {}{}", groups.count, groups.batch,
                      kTailWords[static_cast<std::size_t>(groups.tail)])};
}

Tree repeat(const Tree& input, std::uint64_t rounds) {
  auto list = [=, each = input.list](Turn turn, std::size_t limit) {
    std::vector<Place> places;
    const std::uint64_t own = rounds == kEndless ? kEndlessRounds : rounds;
    for (std::uint64_t round = 0; round < rounds && places.size() < limit; ++round) {
      const bool fits = turn.round == 0 || own <= (UINT64_MAX - round) / turn.round;
      const std::uint64_t inner = fits ? turn.round * own + round : combine(turn.round, round);
      const auto more = each({turn.pass, inner}, limit - places.size());
      if (more.empty()) break;
      places.insert(places.end(), more.begin(), more.end());
    }
    return places;
  };
  const bool empty = rounds == 0 || input.list(kTurn, 1).empty();
  Tree tree{input.steps.repeated(rounds),
            list,
            !empty && (input.endless || rounds == kEndless),
            input.in_order,
            input.single,
            input.words + (rounds == kEndless ? " repeat" : fmt::format(" repeat {}", rounds))};
  if (tree.single) {
    std::uint64_t& all = tree.single->rounds;
    const bool for_ever = all != 0 && rounds != 0 && (all == kEndless || rounds == kEndless);
    all = for_ever ? kEndless : all * rounds;
  }
  return tree;
}

Tree slice(const Tree& input, std::uint64_t first, std::uint64_t count) {
  auto list = [=, whole = input.list](Turn turn, std::size_t limit) {
    auto places = whole(turn, first + std::min<std::uint64_t>(count, limit));
    places.erase(places.begin(),
                 places.begin() + static_cast<std::ptrdiff_t>(std::min(first, places.size())));
    return places;
  };
  return {input.steps.sliced(first, count),
          list,
          input.endless && count == kEndless,
          input.in_order,
          std::nullopt,
          fmt::format("{} slice {} {}", input.words, first, static_cast<std::int64_t>(count))};
}

Tree shard(const Tree& input, std::uint64_t count, std::uint64_t index) {
  auto list = [=, whole = input.list](Turn turn, std::size_t limit) {
    std::vector<Place> places;
    const auto all = whole(turn, limit * count);
    for (std::size_t i = index; i < all.size(); i += count) places.push_back(all[i]);
    return places;
  };
  return {input.steps.sharded(count, index),
          list,
          input.endless,
          false,
          std::nullopt,
          fmt::format("{} shard {} {}", input.words, count, index)};
}

Tree shuffle(const Tree& input, bool reshuffle) {
  auto list = [=, whole = input.list](Turn turn, std::size_t limit) {
    const auto all = whole(turn, kAll);
    const Turn key = reshuffle ? turn : Turn{};
    const Permutation order(all.size(), {7, key.pass, key.round});
    std::vector<Place> places;
    for (std::size_t i = 0; i < std::min(limit, all.size()); ++i) places.push_back(all[order(i)]);
    return places;
  };
  return {input.steps.shuffled({7, reshuffle}),
          list,
          input.endless,
          false,
          std::nullopt,
          input.words + (reshuffle ? " shuffle" : " shuffle once")};
}

Tree concatenate(const Tree& left, const Tree& right) {
  auto list = [=, first = left.list, second = right.list](Turn turn, std::size_t limit) {
    auto places = first(turn, limit);
    const auto more = second(turn, limit - places.size());
    places.insert(places.end(), more.begin(), more.end());
    return places;
  };
  return {Steps::concatenated(left.steps, right.steps),
          list,
          left.endless || right.endless,
          left.in_order && right.in_order,
          std::nullopt,
          fmt::format("({}) and ({})", left.words, right.words)};
}

/// The tree with each verb added, if allowed.
std::vector<Tree> grown(const Tree& tree) {
  const Tree other = leaf(1, {.count = 5, .batch = 2});
  std::vector<Tree> trees{
      repeat(tree, 0),   repeat(tree, 3),          repeat(tree, kEndless),   slice(tree, 0, 2),
      slice(tree, 1, 3), slice(tree, 2, kEndless), slice(tree, 0, kEndless), shard(tree, 1, 0),
      shard(tree, 3, 1), concatenate(tree, other), concatenate(other, tree)};
  if (!tree.endless) {
    trees.push_back(shuffle(tree, true));
    trees.push_back(shuffle(tree, false));
  }
  return trees;
}

/// Calls `check` for every tree of up to two verbs over every small leaf, and for those of three
/// verbs over a few.
void for_each_tree(const std::function<void(const Tree&)>& check) {
  for (std::uint64_t number = 0; number <= 13; ++number) {
    const std::uint64_t count = number == 13 ? kEndless : number;
    for (std::uint64_t batch = 1; batch <= 5; ++batch) {
      for (const Tail tail : kTails) {
        const Tree root = leaf(0, {.count = count, .batch = batch, .tail = tail});
        check(root);
        for (const Tree& one : grown(root)) {
          check(one);
          for (const Tree& two : grown(one)) {
            check(two);
            if (batch != 3 || (count != 2 && count != 7)) continue;
            for (const Tree& three : grown(two)) check(three);
          }
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// Leaf, pass, round, lap and position.
using Row = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
using Rows = std::vector<Row>;

Rows rows_of(const Place& place) {
  Rows rows;
  for (std::uint64_t i = 0; i < place.count; ++i) {
    const std::uint64_t at = place.first + i;
    const std::uint64_t lap = place.period == 0 ? 0 : at / place.period;
    rows.emplace_back(place.leaf, place.turn.pass, place.turn.round, place.turn.lap + lap,
                      place.period == 0 ? at : at % place.period);
  }
  return rows;
}

TEST(StepsTest, EveryStepEqualsThatOfAnExplicitList) {
  for_each_tree([](const Tree& tree) {
    const auto places = tree.list(kTurn, tree.endless ? kPrefix : kAll);
    ASSERT_EQ(tree.steps.count(), tree.endless ? kEndless : places.size()) << tree.words;
    for (std::size_t step = 0; step < places.size(); ++step) {
      const Place place = tree.steps.step(kTurn, step);
      ASSERT_EQ(rows_of(place), rows_of(places[step])) << tree.words << ", step " << step;
      ASSERT_EQ(place.padded_to, places[step].padded_to) << tree.words << ", step " << step;
    }
  });
}

TEST(StepsTest, RowsAreTheSumOfTheStepsOrUncounted) {
  for_each_tree([](const Tree& tree) {
    ASSERT_EQ(tree.steps.in_order(), tree.in_order) << tree.words;
    if (tree.endless) {
      ASSERT_EQ(tree.steps.rows(), kEndless) << tree.words;
      return;
    }
    if (!tree.in_order && tree.steps.rows() == kUncounted) return;
    std::uint64_t rows = 0;
    for (const Place& place : tree.list(kTurn, kAll)) rows += place.count;
    ASSERT_EQ(tree.steps.rows(), rows) << tree.words;
  });
}

TEST(StepsTest, RowsOfStepsInOrderAreFoundByNumber) {
  for_each_tree([](const Tree& tree) {
    if (!tree.in_order) return;
    Rows rows;
    std::uint64_t step = 0;
    for (const Place& place : tree.list(kTurn, tree.endless ? kPrefix : kAll)) {
      ASSERT_EQ(tree.steps.rows_before(step++), rows.size()) << tree.words << ", before " << step;
      const Rows more = rows_of(place);
      rows.insert(rows.end(), more.begin(), more.end());
    }
    ASSERT_EQ(tree.steps.rows_before(step), rows.size()) << tree.words;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      // The place is the requested row and those that follow it in the same run.
      Place place = tree.steps.row(kTurn, row);
      ASSERT_GE(place.count, 1U) << tree.words;
      ASSERT_TRUE(tree.endless || place.count <= rows.size() - row) << tree.words;
      place.count = std::min<std::uint64_t>(place.count, rows.size() - row);
      const auto here = rows.begin() + static_cast<std::ptrdiff_t>(row);
      ASSERT_EQ(rows_of(place), Rows(here, here + static_cast<std::ptrdiff_t>(place.count)))
          << tree.words << ", row " << row;
    }
  });
}

TEST(StepsTest, OnlyABatchAndRepeatsOfItAreSingle) {
  for_each_tree([](const Tree& tree) {
    const auto single = tree.steps.single();
    ASSERT_EQ(single.has_value(), tree.single.has_value()) << tree.words;
    if (!single) return;
    EXPECT_EQ(single->leaf, tree.single->leaf);
    EXPECT_EQ(single->groups.count, tree.single->groups.count);
    EXPECT_EQ(single->groups.batch, tree.single->groups.batch);
    EXPECT_EQ(single->groups.tail, tree.single->groups.tail);
    ASSERT_EQ(single->rounds, tree.single->rounds) << tree.words;
  });
}

TEST(StepsTest, SpanIncludesDroppedSamples) {
  const Steps steps = Steps::leaf(0, {.count = 11, .batch = 4, .tail = Tail::drop});
  EXPECT_EQ(steps.rows(), 8U);
  EXPECT_EQ(steps.span(), 11U);
  EXPECT_EQ(steps.repeated(3).span(), 33U);
  EXPECT_EQ(Steps::concatenated(steps, steps).span(), 22U);
}

TEST(StepsTest, AWrapCountsTheSamplesOfItsRoundOnce) {
  const Steps steps = Steps::leaf(0, {.count = 11, .batch = 4, .tail = Tail::wrap});
  EXPECT_EQ(steps.rows(), 12U);
  EXPECT_EQ(steps.span(), 11U);
  EXPECT_EQ(steps.repeated(3).rows(), 36U);
  EXPECT_EQ(steps.repeated(3).span(), 33U);
}

TEST(StepsTest, EvenSpreadsAHundredAndThreeSamplesOverBatchesOfSixteen) {
  const Groups groups{.count = 103, .batch = 16, .tail = Tail::even};
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t step = 0; step < groups.steps(); ++step) sizes.push_back(groups.size(step));
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{15, 15, 15, 15, 15, 14, 14}));
}

TEST(StepsTest, StepOfFindsTheStepOfARow) {
  for (std::uint64_t count = 0; count <= 40; ++count)
    for (std::uint64_t batch = 1; batch <= 12; ++batch)
      for (const Tail tail : kTails) {
        const Groups groups{count, batch, tail};
        std::uint64_t row = 0;
        for (std::uint64_t step = 0; step < groups.steps(); ++step)
          for (std::uint64_t i = 0; i < groups.size(step); ++i)
            ASSERT_EQ(groups.step_of(row++), step) << count << " by " << batch;
        ASSERT_EQ(row, groups.delivered());
      }
}

TEST(StepsTest, LapsOfAWrapBelowAWrapAreAllDifferent) {
  // The calls of unbatch to an inner wrap: 2 samples by 5, in three laps for each outer lap.
  const Steps inner = Steps::leaf(0, {.count = 2, .batch = 5, .tail = Tail::wrap});
  Rows rows;
  for (std::uint64_t lap = 0; lap < 3; ++lap)
    for (std::uint64_t row = 0; row < inner.rows(); ++row) {
      Place place = inner.row({.pass = 0, .round = 0, .lap = lap}, row);
      place.count = 1;
      rows.push_back(rows_of(place).front());
    }
  std::ranges::sort(rows);
  EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end());
}

TEST(StepsTest, EachLapIsASeparateOccurrence) {
  EXPECT_EQ((Turn{.pass = 4, .round = 7}.occurrence()), 7U);
  std::vector<std::uint64_t> seen;
  for (std::uint64_t round = 0; round < 100; ++round)
    for (std::uint64_t lap = 0; lap < 100; ++lap)
      seen.push_back(Turn{.pass = 0, .round = round, .lap = lap}.occurrence());
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

TEST(StepsTest, TheSmallestStepIsFoundAnywhere) {
  for_each_tree([](const Tree& tree) {
    std::uint64_t listed = kEndless;
    for (const Place& place : tree.list(kTurn, tree.endless ? kPrefix : kAll))
      if (place.padded_to == 0) listed = std::min(listed, place.count);
    for (std::uint64_t samples = 1; samples <= 8; ++samples) {
      const auto small = tree.steps.leaves_below(samples);
      // A shuffle or a shard may be reported for a step that appears in another pass, or not at
      // all.
      const bool exact = tree.in_order && !tree.endless;
      ASSERT_TRUE(!small.empty() || listed >= samples) << tree.words;
      ASSERT_TRUE(small.empty() || listed < samples || !exact) << tree.words;
      for (const auto& [leaf, fewest] : small) ASSERT_LT(fewest, samples) << tree.words;
    }
  });
}

TEST(StepsTest, ShortStepsOfStrictBatchesAreFoundAnywhere) {
  for_each_tree([](const Tree& tree) {
    const auto found = tree.steps.short_leaf(0, kEndless);
    bool is_short = false;
    const bool strict = tree.words.find("strict") != std::string::npos;
    if (!strict || tree.steps.count() == 0) {
      ASSERT_FALSE(found) << tree.words;
      return;
    }
    // In these trees leaf 0 is the strict one, and its batch size follows "by".
    const std::uint64_t size = std::stoull(tree.words.substr(tree.words.find(" strict") - 1));
    for (const Place& place : tree.list(kTurn, tree.endless ? kPrefix : kAll))
      is_short = is_short || (place.leaf == 0 && place.count < size);
    if (is_short) {
      ASSERT_EQ(found, 0U) << tree.words;
    }
    // A shuffle or a shard may be rejected for a step that appears in another pass, or not at all.
    if (!is_short && tree.in_order) {
      ASSERT_FALSE(found) << tree.words;
    }
  });
}

TEST(StepsTest, AStepOrRowBeyondTheEndIsAnInternalError) {
  const Steps steps = Steps::leaf(0, {.count = 5, .batch = 2});
  EXPECT_THROW((void)steps.step({}, 3), InternalError);
  EXPECT_THROW((void)steps.row({}, 5), InternalError);
  EXPECT_THROW((void)steps.shuffled({}).row({}, 0), InternalError);
  EXPECT_THROW((void)steps.sharded(2, 0).rows_before(0), InternalError);
}

TEST(StepsTest, FarStepsOfHugeDataAreFoundAtOnce) {
  const Steps steps = Steps::leaf(0, {.count = (1ULL << 61) + 1, .batch = 2})
                          .repeated(kEndless)
                          .sliced(1, kEndless);
  const std::uint64_t each = (1ULL << 60) + 1;
  const Place last = steps.step({}, each - 2);
  EXPECT_EQ(rows_of(last), (Rows{{0, 0, 0, 0, 1ULL << 61}}));
  const Place next = steps.step({}, each - 1);
  EXPECT_EQ(rows_of(next), (Rows{{0, 0, 1, 0, 0}, {0, 0, 1, 0, 1}}));
  EXPECT_EQ(steps.rows_before(each - 1), (1ULL << 61) - 1);
}

}  // namespace
}  // namespace penstock
