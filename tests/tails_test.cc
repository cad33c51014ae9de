// Every tail policy, from the pure functions alone: the samples of the steps of a pass, their cut,
// and the weight of a row. All small cases, and large ones at random.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "graph/tail.h"
#include "order/cut.h"
#include "plan/plan_data.h"
#include "sample/batch_data.h"

namespace penstock {
namespace {

constexpr Tail kTails[] = {Tail::short_, Tail::drop, Tail::even,
                           Tail::pad,    Tail::wrap, Tail::strict};
__extension__ using Wide = __int128;

/// An exact number. Supports only what the tests need; the values stay far below 2^127.
struct Exact {
  Wide over = 0;
  Wide under = 1;

  Exact(Wide top, Wide bottom) : over(top), under(bottom) {
    Wide a = over < 0 ? -over : over;
    Wide b = under;
    while (b != 0) a = std::exchange(b, a % b);
    over /= a;
    under /= a;
  }
  Exact(Wide whole) : over(whole) {}                      // NOLINT: a number is one
  Exact(Ratio ratio) : Exact(ratio.over, ratio.under) {}  // NOLINT: so is a fraction
  friend Exact operator*(const Exact& a, const Exact& b) {
    return {a.over * b.over, a.under * b.under};
  }
  friend Exact operator+(const Exact& a, const Exact& b) {
    return {a.over * b.under + b.over * a.under, a.under * b.under};
  }
  bool operator==(const Exact&) const = default;
};

struct Case {
  std::uint64_t samples;
  std::uint64_t batch;
  std::uint64_t shares;
  Tail tail;
  [[nodiscard]] std::string words() const {
    return fmt::format("N = {}, G = {}, R = {}, {}", samples, batch, shares, tail_name(tail));
  }
  [[nodiscard]] Geometry geometry(std::uint64_t rounds = 1) const {
    return Geometry(Steps::leaf(0, {samples, batch, tail}).repeated(rounds));
  }
  [[nodiscard]] bool divides() const { return samples % batch == 0; }
  [[nodiscard]] std::uint64_t steps() const {
    return samples / batch + (tail != Tail::drop && !divides() ? 1 : 0);
  }
};

std::optional<Plan> plan_of(const Case& one) {
  const auto shares = static_cast<std::uint32_t>(one.shares);
  try {
    return Plan(Dataset::range(static_cast<std::int64_t>(one.samples))
                    .batch(static_cast<std::int64_t>(one.batch), {.tail = one.tail}),
                {.shares = {shares, 0, shares}});
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

ShareFacts facts_of(const Cut& cut, std::uint32_t share) {
  ShareFacts facts;
  facts.share = share;
  facts.shares = static_cast<std::uint32_t>(cut.shares);
  facts.rows = cut.size(share);
  facts.step_rows = cut.rows;
  facts.slots = cut.slots();
  return facts;
}

/// A loss for each sample; any numbers will do as long as no two means are equal by chance.
std::int64_t loss(std::uint64_t sample) {
  return static_cast<std::int64_t>((sample * sample * 7919 + 104729 * sample + 13) % 1009) - 300;
}

/// Contiguous, together the whole step, sizes differ by at most one.
void expect_balanced(const Cut& cut, const std::string& words) {
  std::uint64_t next = 0;
  for (std::uint64_t share = 0; share < cut.shares; ++share) {
    ASSERT_EQ(cut.first(share), next) << words;
    next += cut.size(share);
    ASSERT_LE(cut.size(share), cut.size(0)) << words;
    ASSERT_LE(cut.size(0) - cut.size(share), 1U) << words;
    if (cut.slots() > 0) {
      ASSERT_LE(cut.size(share), cut.slots()) << words;
    }
  }
  ASSERT_EQ(next, cut.rows) << words;
}

/// If R replicas each take the mean over their slots, the result is the mean of the step.
void expect_true_mean(const Place& place, const Cut& cut, const std::string& words) {
  const auto value = [&](std::uint64_t row) {
    const std::uint64_t at = place.first + row;
    return loss(place.period == 0 ? at : at % place.period);
  };
  Exact average = 0;
  for (std::uint32_t share = 0; share < cut.shares; ++share) {
    const ShareFacts facts = facts_of(cut, share);
    if (facts.all_rows() == 0) continue;  // an empty share gives 0
    Wide sum = 0;
    for (std::uint64_t row = 0; row < facts.rows; ++row) sum += value(cut.first(share) + row);
    const Exact mean = Exact(facts.weight()) * Exact(sum, static_cast<Wide>(facts.all_rows()));
    average = average + mean * Exact(facts.loss_scale()) * Exact(1, cut.shares);
  }
  Wide all = 0;
  for (std::uint64_t row = 0; row < place.count; ++row) all += value(row);
  ASSERT_EQ(average, Exact(all, static_cast<Wide>(place.count))) << words;
}

/// The expected number of deliveries of each sample.
std::vector<std::uint64_t> wanted_counts(const Case& one) {
  std::vector<std::uint64_t> counts(one.samples, 1);
  if (one.tail == Tail::drop)
    for (std::uint64_t i = one.samples / one.batch * one.batch; i < one.samples; ++i) counts[i] = 0;
  if (one.tail == Tail::wrap && one.samples > 0)
    for (std::uint64_t i = one.samples; i < one.steps() * one.batch; ++i) ++counts[i % one.samples];
  return counts;
}

void expect_size(const Case& one, const Place& place, std::uint64_t step) {
  const bool last = step + 1 == one.steps();
  const std::uint64_t left = one.samples - step * one.batch;  // unless even
  switch (one.tail) {
    case Tail::even: {
      const std::uint64_t q = one.samples / one.steps();
      const std::uint64_t r = one.samples % one.steps();
      ASSERT_EQ(place.first, step * q + std::min(step, r));
      ASSERT_LE(place.count, one.batch);
      ASSERT_GE(place.count, q);
      ASSERT_LE(place.count, q + 1);
      return;
    }
    case Tail::drop:
    case Tail::wrap:
      ASSERT_EQ(place.count, one.batch);
      return;
    default:
      ASSERT_EQ(place.count, last ? std::min(left, one.batch) : one.batch);
  }
}

void expect_pass(const Case& one, const Geometry& geometry) {
  SCOPED_TRACE(one.words());
  ASSERT_EQ(geometry.steps(), one.steps());
  ASSERT_EQ(geometry.position(geometry.steps()), one.samples);
  std::vector<std::uint64_t> counts(one.samples, 0);
  for (std::uint64_t step = 0; step < geometry.steps(); ++step) {
    const Place place = geometry.step(0, step);
    ASSERT_NO_FATAL_FAILURE(expect_size(one, place, step));
    for (std::uint64_t row = 0; row < place.count; ++row)
      ++counts[(place.first + row) % one.samples];
    const Cut cut = cut_of(place, one.shares);
    const std::uint64_t slots = (one.batch + one.shares - 1) / one.shares;
    ASSERT_EQ(cut.slots(), one.tail == Tail::pad ? slots : 0);
    ASSERT_NO_FATAL_FAILURE(expect_balanced(cut, one.words()));
    ASSERT_NO_FATAL_FAILURE(expect_true_mean(place, cut, one.words()));
  }
  ASSERT_EQ(counts, wanted_counts(one));
}

TEST(TailsTest, EverySmallCaseCoversBalancesAndWeighsByItsPolicy) {
  for (std::uint64_t samples = 0; samples <= 64; ++samples)
    for (std::uint64_t batch = 1; batch <= 16; ++batch)
      for (std::uint64_t shares = 1; shares <= 8; ++shares)
        for (const Tail tail : kTails) {
          const Case one{samples, batch, shares, tail};
          const auto plan = plan_of(one);
          const bool refused = tail == Tail::strict && (!one.divides() || batch % shares != 0);
          ASSERT_EQ(plan.has_value(), !refused) << one.words();
          if (!plan) continue;
          ASSERT_NO_FATAL_FAILURE(expect_pass(one, plan->data()->geometry));
          const std::uint64_t extra = tail == Tail::wrap   ? one.steps() * batch - samples
                                      : tail == Tail::drop ? one.steps() * batch
                                                           : 0;
          ASSERT_EQ(plan->samples(), Cardinality::of(tail == Tail::drop ? extra : samples + extra));
        }
}

TEST(TailsTest, TheContentOfAStepDoesNotDependOnTheNumberOfShares) {
  for (std::uint64_t samples = 0; samples <= 20; ++samples)
    for (std::uint64_t batch = 1; batch <= 8; ++batch)
      for (const Tail tail : kTails) {
        const auto alone = plan_of({samples, batch, 1, tail});
        for (std::uint64_t shares = 2; alone && shares <= 8; ++shares) {
          const auto plan = plan_of({samples, batch, shares, tail});
          if (!plan) continue;
          ASSERT_EQ(plan->steps(), alone->steps());
          ASSERT_EQ(plan->digests(), alone->digests());
          for (std::uint64_t step = 0; step < plan->steps().count(); ++step) {
            const Place a = alone->data()->geometry.step(1, step);
            const Place b = plan->data()->geometry.step(1, step);
            ASSERT_TRUE(a.first == b.first && a.count == b.count && a.period == b.period);
          }
        }
      }
}

/// Large numbers, of all magnitudes equally often.
class Draw {
 public:
  std::uint64_t upto(std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(engine_);
  }
  std::uint64_t magnitude(std::uint64_t most) {
    return std::min(most, upto((std::uint64_t{2} << upto(40)) - 1));
  }
  Case one() {
    const Tail tail = kTails[upto(std::size(kTails) - 1)];
    Case drawn{magnitude(1'000'000'000'000), 1 + magnitude(1'000'000), 1 + magnitude(4095), tail};
    // Mistakes are most likely for sizes that nearly divide.
    if (upto(2) == 0) drawn.samples = drawn.batch * magnitude(100'000) + upto(2);
    return drawn;
  }

 private:
  std::mt19937_64 engine_{20240611};  // NOLINT: the same cases every time
};

/// Each sample of the step contributes exactly the V-th part of the average, in any share.
void expect_equal_parts(const Cut& cut, std::uint32_t share, const std::string& words) {
  const ShareFacts facts = facts_of(cut, share);
  if (facts.rows == 0) return;
  const Exact part = Exact(facts.weight()) * Exact(facts.loss_scale()) *
                     Exact(1, static_cast<Wide>(facts.all_rows())) *
                     Exact(1, static_cast<Wide>(cut.shares));
  ASSERT_EQ(part, Exact(1, static_cast<Wide>(cut.rows))) << words;
}

/// Step `step` and the next one are adjacent; the last one of a round ends where the round ends.
void expect_joined(const Case& one, const Geometry& geometry, std::uint64_t step) {
  const Place place = geometry.step(0, step);
  ASSERT_GE(place.count, 1U);
  ASSERT_LE(place.count, one.batch);
  ASSERT_EQ(place.period, one.tail == Tail::wrap ? one.samples : 0);
  ASSERT_EQ(place.padded_to, one.tail == Tail::pad ? one.batch : 0);
  const std::uint64_t at = geometry.position(step);
  ASSERT_EQ(at, place.turn.round * one.samples + place.first);
  const std::uint64_t next = geometry.position(step + 1);
  const std::uint64_t round_end = (place.turn.round + 1) * one.samples;
  if (next != round_end || one.divides()) {
    ASSERT_EQ(next, at + place.count);
  } else if (one.tail == Tail::wrap) {
    ASSERT_GE(at + place.count, next);
    ASSERT_EQ(place.count, one.batch);
  } else if (one.tail == Tail::drop) {
    ASSERT_LE(at + place.count, next);
    ASSERT_LT(next - at - place.count, one.batch);
  } else {
    ASSERT_EQ(next, at + place.count);
  }
}

void expect_step(const Case& one, const Geometry& geometry, std::uint64_t step, Draw& draw) {
  SCOPED_TRACE(fmt::format("{}, step {}", one.words(), step));
  ASSERT_NO_FATAL_FAILURE(expect_joined(one, geometry, step));
  const Cut cut = cut_of(geometry.step(0, step), one.shares);
  for (const std::uint64_t share : {std::uint64_t{0}, draw.upto(one.shares - 1), one.shares - 1}) {
    ASSERT_LE(cut.size(share), cut.size(0));
    ASSERT_LE(cut.size(0), cut.size(share) + 1);
    ASSERT_EQ(cut.first(share) + cut.size(share), cut.first(share + 1));
    expect_equal_parts(cut, static_cast<std::uint32_t>(share), one.words());
  }
  ASSERT_EQ(cut.first(one.shares), cut.rows);
}

std::uint64_t random_cases() {
  return std::getenv("PENSTOCK_LONG") != nullptr ? 1'000'000 : 20'000;
}

TEST(TailsTest, RandomLargeCasesHoldInTheCheckedSteps) {
  Draw draw;
  for (std::uint64_t i = 0; i < random_cases(); ++i) {
    const Case one = draw.one();
    const std::uint64_t rounds = 1 + draw.upto(2);
    const Geometry geometry = one.geometry(rounds);
    ASSERT_EQ(geometry.steps(), rounds * one.steps()) << one.words();
    ASSERT_EQ(geometry.span(), rounds * one.samples) << one.words();
    if (geometry.steps() == 0) continue;
    for (const std::uint64_t step :
         {std::uint64_t{0}, one.steps() - 1, geometry.steps() - 1, draw.upto(geometry.steps() - 1)})
      ASSERT_NO_FATAL_FAILURE(expect_step(one, geometry, step, draw));
    ASSERT_EQ(geometry.position(one.steps()), one.samples) << one.words();
  }
}

TEST(TailsTest, RandomLargeCasesResumeAtAnotherBatchSize) {
  Draw draw;
  for (std::uint64_t i = 0; i < random_cases(); ++i) {
    const Case before = draw.one();
    const Geometry first = before.geometry();
    if (first.steps() < 2) continue;
    const std::uint64_t step = 1 + draw.upto(first.steps() - 2);
    Case after = before;
    after.batch = 1 + draw.magnitude(1'000'000);
    const Geometry geometry(Steps::leaf(0, {after.samples, after.batch, after.tail}),
                            first.segments(), {step, first.position(step), after.batch});
    // The rest is a pass of its own, up to its last step.
    Case rest = after;
    rest.samples = before.samples - first.position(step);
    SCOPED_TRACE(before.words() + ", then " + rest.words());
    ASSERT_EQ(geometry.steps(), step + rest.steps());
    if (rest.steps() > 0) {
      ASSERT_EQ(geometry.position(step), first.position(step));
    }
    ASSERT_EQ(geometry.position(geometry.steps()), before.samples);
    for (std::uint64_t look = 0; look < 3 && rest.steps() > 0; ++look) {
      const std::uint64_t ahead = draw.upto(rest.steps() - 1);
      const Place here = geometry.step(0, step + ahead);
      const Place alone = rest.geometry().step(0, ahead);
      ASSERT_EQ(here.first, first.position(step) + alone.first);
      ASSERT_EQ(here.count, alone.count);
      ASSERT_EQ(here.period, after.tail == Tail::wrap ? before.samples : 0);
    }
    const std::uint64_t earlier = draw.upto(step - 1);
    ASSERT_EQ(geometry.step(0, earlier).first, first.step(0, earlier).first);
    ASSERT_EQ(geometry.step(0, earlier).count, first.step(0, earlier).count);
  }
}

}  // namespace
}  // namespace penstock
