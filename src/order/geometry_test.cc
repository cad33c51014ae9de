#include "order/geometry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::uint64_t kPass = 4;
constexpr std::uint64_t kPrefix = 30;  // steps checked for endless data

struct Data {
  std::uint64_t count;
  std::uint64_t batch;
  Tail tail;
  std::uint64_t rounds;

  [[nodiscard]] Steps steps() const {
    return Steps::leaf(2, {.count = count, .batch = batch, .tail = tail}).repeated(rounds);
  }
  [[nodiscard]] Data by(std::uint64_t other) const { return {count, other, tail, rounds}; }
  [[nodiscard]] Geometry from(const Geometry& earlier, std::uint64_t step) const {
    return {steps(), earlier.segments(), {step, earlier.position(step), batch}};
  }
};

void for_each_data(const std::function<void(const Data&)>& check) {
  constexpr std::uint64_t kCounts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, kEndless};
  constexpr std::uint64_t kRounds[] = {0, 1, 3, kEndless};
  for (const std::uint64_t count : kCounts)
    for (std::uint64_t batch = 1; batch <= 5; ++batch)
      for (const Tail tail : {Tail::short_, Tail::drop, Tail::even, Tail::wrap})
        for (const std::uint64_t rounds : kRounds) check({count, batch, tail, rounds});
}

struct Piece {
  std::uint64_t position;
  std::uint64_t round;
  std::uint64_t first;
  std::uint64_t count;
  bool operator==(const Piece&) const = default;
};

/// A pass as a list, computed by walking over the samples with the batch size of each segment.
class Walk {
 public:
  Walk(const Data& data, std::vector<Segment> segments)
      : data_(data), segments_(std::move(segments)) {}

  std::vector<Piece> pieces() {
    std::vector<Piece> pieces;
    while (pieces.size() < kPrefix + 100) {
      const std::uint64_t batch = batch_at(pieces.size());
      if (starts_segment(pieces.size())) steps_left_ = 0;
      const std::uint64_t position = round_ == 0 ? next_ : round_ * data_.count + next_;
      leave_round_unless_fitting(batch);
      if (data_.count == 0 || round_ >= data_.rounds) break;
      const std::uint64_t size = next_size(batch);
      pieces.push_back({position, round_, next_, size});
      next_ = std::min(data_.count, next_ + size);
      leave_round_unless_fitting(batch);
    }
    return pieces;
  }

 private:
  [[nodiscard]] bool starts_segment(std::uint64_t step) const {
    return std::ranges::any_of(segments_, [&](const Segment& one) { return one.step == step; });
  }
  std::uint64_t next_size(std::uint64_t batch) {
    const std::uint64_t left = data_.count - next_;
    if (data_.tail == Tail::wrap || data_.count == kEndless) return batch;
    if (data_.tail != Tail::even) return std::min(batch, left);
    // Spread over the number of steps at the start of the round, or of the batch size.
    if (steps_left_ == 0) steps_left_ = (left + batch - 1) / batch;
    const std::uint64_t size = (left + steps_left_ - 1) / steps_left_;
    --steps_left_;
    return size;
  }
  [[nodiscard]] std::uint64_t batch_at(std::uint64_t step) const {
    std::uint64_t batch = 0;
    for (const Segment& segment : segments_)
      if (segment.step <= step) batch = segment.batch;
    return batch;
  }
  void leave_round_unless_fitting(std::uint64_t batch) {
    const bool drop = data_.tail == Tail::drop;
    const std::uint64_t left = data_.count - next_;
    if (left > 0 && !(drop && left < batch)) return;
    next_ = 0;
    round_ = drop && data_.count < batch ? data_.rounds : round_ + 1;
  }

  Data data_;
  std::vector<Segment> segments_;
  std::uint64_t round_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t steps_left_ = 0;  // of the round, for even
};

std::string words(const Data& data, const Geometry& geometry) {
  std::string text = fmt::format("{} samples, {} rounds, tail {}", data.count, data.rounds,
                                 static_cast<int>(data.tail));
  for (const Segment& segment : geometry.segments())
    text += fmt::format(", from step {} (position {}) by {}", segment.step, segment.position,
                        segment.batch);
  return text;
}

void expect_walk(const Data& data, const Geometry& geometry) {
  const auto pieces = Walk(data, geometry.segments()).pieces();
  const bool endless = pieces.size() > kPrefix + 50;
  ASSERT_EQ(geometry.steps(), endless ? kEndless : pieces.size()) << words(data, geometry);
  std::uint64_t fewest = kEndless;
  for (std::uint64_t step = geometry.segments().back().step; step < pieces.size(); ++step)
    fewest = std::min(fewest, pieces[step].count);
  ASSERT_EQ(geometry.fewest(), fewest) << words(data, geometry);
  for (std::uint64_t step = 0; step < pieces.size(); ++step) {
    const Place place = geometry.step(kPass, step);
    ASSERT_EQ(place.leaf, 2U);
    ASSERT_EQ(place.turn.pass, kPass);
    ASSERT_EQ((Piece{geometry.position(step), place.turn.round, place.first, place.count}),
              pieces[step])
        << words(data, geometry) << ", step " << step;
    const bool wraps = data.tail == Tail::wrap && data.count != kEndless;
    ASSERT_EQ(place.period, wraps ? data.count : 0) << words(data, geometry);
  }
}

std::uint64_t steps_to_look_at(const Geometry& geometry) {
  return std::min(geometry.steps(), kPrefix);
}

TEST(GeometryTest, APassDividesEachRoundIntoBatches) {
  for_each_data([](const Data& data) {
    const Geometry geometry(data.steps());
    ASSERT_TRUE(geometry.elastic());
    ASSERT_EQ(geometry.steps(), data.steps().count()) << words(data, geometry);
    expect_walk(data, geometry);
  });
}

TEST(GeometryTest, BatchesOfAnotherSizeContinueAtAnyStep) {
  for_each_data([](const Data& data) {
    const Geometry before(data.steps());
    for (std::uint64_t step = 0; step < steps_to_look_at(before); ++step)
      for (std::uint64_t batch = 1; batch <= 6; ++batch)
        expect_walk(data, data.by(batch).from(before, step));
  });
}

TEST(GeometryTest, TheBatchSizeMayChangeRepeatedly) {
  for_each_data([](const Data& data) {
    if (data.batch != 2 || data.count % 5 != 2) return;  // 2, 7 and 12 samples
    const Geometry first(data.steps());
    for (std::uint64_t step = 0; step < steps_to_look_at(first); ++step) {
      const Geometry second = data.by(3).from(first, step);
      for (std::uint64_t later = step; later < steps_to_look_at(second); ++later)
        for (std::uint64_t batch = 1; batch <= 5; ++batch)
          expect_walk(data, data.by(batch).from(second, later));
    }
  });
}

TEST(GeometryTest, DeliveredStepsDoNotChangeWithTheBatchSize) {
  for_each_data([](const Data& data) {
    const Geometry before(data.steps());
    for (std::uint64_t step = 0; step < steps_to_look_at(before); ++step) {
      const Geometry after = data.by(4).from(before, step);
      ASSERT_GE(after.steps(), step);
      for (std::uint64_t earlier = 0; earlier < step; ++earlier) {
        const Place was = before.step(kPass, earlier);
        const Place is = after.step(kPass, earlier);
        ASSERT_EQ(was.turn.round, is.turn.round) << words(data, after);
        ASSERT_EQ(was.first, is.first) << words(data, after);
        ASSERT_EQ(was.count, is.count) << words(data, after);
      }
    }
  });
}

TEST(GeometryTest, WithoutDropEverySampleIsDeliveredOnceWhereverSizesChange) {
  for_each_data([](const Data& data) {
    if (data.tail == Tail::drop || data.tail == Tail::wrap) return;
    const Geometry before(data.steps());
    for (std::uint64_t step = 0; step < steps_to_look_at(before); ++step) {
      const Geometry after = data.by(5).from(before, step);
      ASSERT_EQ(after.position(0), 0U);
      for (std::uint64_t s = 0; s < steps_to_look_at(after); ++s)
        ASSERT_EQ(after.position(s) + after.step(kPass, s).count, after.position(s + 1))
            << words(data, after) << ", step " << s;
      ASSERT_EQ(after.position(after.steps()), after.span());
    }
  });
}

TEST(GeometryTest, ResumingWithTheSameSizeAddsNoSegment) {
  for_each_data([](const Data& data) {
    const Geometry once(data.steps());
    const Geometry twice = data.by(3).from(once, steps_to_look_at(once) / 2);
    for (std::uint64_t step = 0; step < steps_to_look_at(once); ++step)
      ASSERT_EQ(data.from(once, step).segments(), once.segments()) << words(data, once);
    for (std::uint64_t step = twice.segments().back().step; step < steps_to_look_at(twice); ++step)
      ASSERT_EQ(data.by(3).from(twice, step).segments(), twice.segments()) << words(data, twice);
  });
}

TEST(GeometryTest, AFinishedPassStaysFinishedAtAnySize) {
  for_each_data([](const Data& data) {
    const Geometry before(data.steps());
    if (before.span() == kEndless) return;
    ASSERT_EQ(before.position(before.steps()), before.span());
    for (std::uint64_t batch = 1; batch <= 6; ++batch)
      ASSERT_EQ(data.by(batch).from(before, before.steps()).steps(), before.steps())
          << words(data, before);
  });
}

TEST(GeometryTest, ASizeThatDeliveredNothingIsForgotten) {
  const Data data{.count = 10, .batch = 3, .tail = Tail::short_, .rounds = 1};
  const Geometry first(data.steps());
  const Geometry unused = data.by(5).from(first, 2);
  EXPECT_EQ(data.by(4).from(unused, 2).segments(), (std::vector<Segment>{{0, 0, 3}, {2, 6, 4}}));
  EXPECT_EQ(data.from(unused, 2).segments(), first.segments());
  EXPECT_EQ(data.by(4).from(first, 0).segments(), (std::vector<Segment>{{0, 0, 4}}));
}

TEST(GeometryTest, TheRestOfARoundIsSpreadEvenlyAtAnotherSize) {
  const Data data{.count = 103, .batch = 16, .tail = Tail::even, .rounds = 1};
  const Geometry before(data.steps());
  const Geometry after = data.by(20).from(before, 2);  // 73 samples remain
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t step = 0; step < after.steps(); ++step)
    sizes.push_back(after.step(kPass, step).count);
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{15, 15, 19, 18, 18, 18}));
  EXPECT_EQ(after.rest_of_round().count, 73U);
}

TEST(GeometryTest, AWrapAtAnotherSizeStillStartsAtTheStartOfTheOrder) {
  const Data data{.count = 10, .batch = 4, .tail = Tail::wrap, .rounds = 2};
  const Geometry after = data.by(5).from(Geometry(data.steps()), 1);
  const Place last = after.step(kPass, 2);  // positions 9, then 0 to 3
  EXPECT_EQ(last.first, 9U);
  EXPECT_EQ(last.count, 5U);
  EXPECT_EQ(last.period, 10U);
  EXPECT_EQ(after.position(3), 10U) << "the position at the end of a round counts its samples";
}

TEST(GeometryTest, DeliveredStepsKeepTheirTail) {
  const Data even{.count = 13, .batch = 4, .tail = Tail::even, .rounds = 1};
  const Data keep{.count = 13, .batch = 4, .tail = Tail::short_, .rounds = 1};
  const Geometry before(even.steps());          // 4, 3, 3, 3
  const Geometry after = keep.from(before, 2);  // and 4, 2 for the last six
  const Geometry again = even.from(after, 3);
  EXPECT_EQ(after.segments().size(), 2U);
  EXPECT_EQ(after.step(kPass, 1).count, 3U);
  EXPECT_EQ(after.step(kPass, 2).count, 4U);
  EXPECT_EQ(after.step(kPass, 3).count, 2U);
  EXPECT_EQ(again.step(kPass, 2).count, 4U);
  EXPECT_EQ(again.segments().size(), 3U);
}

TEST(GeometryTest, PaddedStepsHaveTheSlotsOfTheirSize) {
  const Data data{.count = 13, .batch = 4, .tail = Tail::pad, .rounds = 1};
  const Geometry after = data.by(6).from(Geometry(data.steps()), 2);
  EXPECT_EQ(after.step(kPass, 1).padded_to, 4U);
  EXPECT_EQ(after.step(kPass, 2).padded_to, 6U);
  EXPECT_EQ(after.step(kPass, 2).count, 5U);
}

TEST(GeometryTest, ThePositionIsTheStepIfTheDatasetCountsSteps) {
  const Steps leaf = Steps::leaf(0, {.count = 10, .batch = 3});
  const std::vector<Steps> counted = {
      leaf.sliced(0, 3), leaf.sliced(0, kEndless),      leaf.sharded(2, 0),
      leaf.shuffled({}), leaf.shuffled({}).repeated(2), Steps::concatenated(leaf, leaf)};
  for (const Steps& steps : counted) {
    const Geometry geometry(steps);
    EXPECT_FALSE(geometry.elastic());
    EXPECT_EQ(geometry.steps(), steps.count());
    EXPECT_EQ(geometry.span(), steps.count());
    for (std::uint64_t step = 0; step < steps.count(); ++step) {
      EXPECT_EQ(geometry.position(step), step);
      EXPECT_EQ(geometry.step(kPass, step).first, steps.step({kPass, 0}, step).first);
    }
    EXPECT_THROW(Geometry(steps, {{0, 0, 3}}, {1, 3, 2}), InternalError);
  }
}

TEST(GeometryTest, AStepBeyondTheEndIsAnInternalError) {
  const Geometry geometry(Steps::leaf(0, {.count = 10, .batch = 3}));
  EXPECT_THROW((void)geometry.step(0, 4), InternalError);
}

}  // namespace
}  // namespace penstock
