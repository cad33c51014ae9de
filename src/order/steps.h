#pragma once
// How samples form steps: a small tree over the batch nodes of a dataset, closed under repeat,
// concatenate, take, skip, shard and shuffle of whole steps. Every query costs O(depth), plus a
// binary search among the parts of a concatenate.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/mix.h"
#include "order/permutation.h"
#include "penstock/tail.h"

namespace penstock {

inline constexpr std::uint64_t kEndless = UINT64_MAX;
/// A number of samples that is known only after walking through all steps.
inline constexpr std::uint64_t kUncounted = UINT64_MAX - 1;
/// The number of rounds of an endless repeat when rounds of several repeats are combined.
inline constexpr std::uint64_t kEndlessRounds = 1ULL << 32;

/// The number of round `inner`, of `rounds`, inside round `outer`. If it does not fit into 64 bits,
/// as below three endless repeats, it is a hash: every round still has its own.
constexpr std::uint64_t nested_round(std::uint64_t outer, std::uint64_t rounds,
                                     std::uint64_t inner) {
  std::uint64_t round = 0;
  const bool overflows =
      __builtin_mul_overflow(outer, rounds, &round) || __builtin_add_overflow(round, inner, &round);
  return overflows ? combine(outer, inner) : round;
}

/// `count` samples in groups of `batch`.
struct Groups {
  std::uint64_t count = 0;
  std::uint64_t batch = 1;
  Tail tail = Tail::short_;

  [[nodiscard]] std::uint64_t steps() const;
  [[nodiscard]] std::uint64_t first(std::uint64_t step) const;
  [[nodiscard]] std::uint64_t size(std::uint64_t step) const;
  /// The step that contains row `row` of the delivered samples.
  [[nodiscard]] std::uint64_t step_of(std::uint64_t row) const;
  /// Number of delivered samples: with `drop` fewer than `count`, with `wrap` more.
  [[nodiscard]] std::uint64_t delivered() const;
  /// `wrap`: the order starts again after this many samples; otherwise 0.
  [[nodiscard]] std::uint64_t period() const {
    return tail == Tail::wrap && count != kEndless ? count : 0;
  }
  /// `pad`: slots of every step; otherwise 0.
  [[nodiscard]] std::uint64_t padded_to() const { return tail == Tail::pad ? batch : 0; }
  /// True if every step has `batch` samples.
  [[nodiscard]] bool divides() const { return count == kEndless || count % batch == 0; }
  /// Samples of the smallest of the first `among` steps, which is the last of them; kEndless if
  /// there is none, or if steps are padded: every share of such a step has rows.
  [[nodiscard]] std::uint64_t fewest(std::uint64_t among = kEndless) const;
};

/// Tells repeated deliveries of a sample apart: the pass, and the combined round of the repeats
/// above. A wrap delivers samples of the round again, in the same order: each time is a lap.
struct Turn {
  std::uint64_t pass = 0;
  std::uint64_t round = 0;
  std::uint64_t lap = 0;

  bool operator==(const Turn&) const = default;
  /// Differs for each delivery of a sample in a pass.
  [[nodiscard]] std::uint64_t occurrence() const { return lap == 0 ? round : combine(round, lap); }
};

/// Rows of one batch node: `count` samples of its input from `first` on.
struct Place {
  std::uint32_t leaf = 0;
  Turn turn;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t period = 0;     // the order starts again after this many samples; 0: it does not
  std::uint64_t padded_to = 0;  // slots of the step, including padding; 0: not padded
};

/// Consecutive samples in one turn.
struct Stretch {
  Turn turn;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
/// The rows of the step from `row` on, at most `rows`: a step that wraps reaches the end of the
/// order one or more times, and continues at its start in another lap.
inline Stretch stretch_of(const Place& place, std::uint64_t row, std::uint64_t rows) {
  Stretch stretch{place.turn, place.first + row, rows};
  if (place.period == 0) return stretch;
  stretch.turn.lap += stretch.first / place.period;
  stretch.first %= place.period;
  stretch.count = rows < place.period - stretch.first ? rows : place.period - stretch.first;
  return stretch;
}

/// A shuffle of whole steps.
struct StepShuffle {
  std::uint64_t seed = 0;
  bool reshuffle = true;
};

/// Immutable; copies share the tree.
class Steps {
 public:
  /// The steps of batch node number `leaf`.
  static Steps leaf(std::uint32_t leaf, Groups groups);
  [[nodiscard]] Steps repeated(std::uint64_t rounds) const;
  [[nodiscard]] Steps sliced(std::uint64_t first, std::uint64_t count) const;
  [[nodiscard]] Steps sharded(std::uint64_t count, std::uint64_t index) const;
  [[nodiscard]] Steps shuffled(StepShuffle shuffle) const;
  static Steps concatenated(const Steps& left, const Steps& right) {
    return concatenated(std::vector<Steps>{left, right});
  }
  /// At least one part; a step is found by binary search.
  static Steps concatenated(std::vector<Steps> parts);

  /// Number of steps, or kEndless.
  [[nodiscard]] std::uint64_t count() const;
  /// Number of samples of its steps, or kEndless, or kUncounted.
  [[nodiscard]] std::uint64_t rows() const;
  /// Number of samples that its steps cover, including dropped ones; or like `rows`.
  [[nodiscard]] std::uint64_t span() const;
  /// True if steps come in the order of their samples, so that rows can be found by number.
  [[nodiscard]] bool in_order() const;

  [[nodiscard]] Place step(Turn turn, std::uint64_t step) const;
  /// The sample at `row` of the concatenated steps; `in_order()` only.
  [[nodiscard]] Place row(Turn turn, std::uint64_t row) const;
  /// Samples in the steps before `step`; `in_order()` only.
  [[nodiscard]] std::uint64_t rows_before(std::uint64_t step) const;
  /// A `strict` batch node that has, or in some pass may have, a short step among [first, last).
  [[nodiscard]] std::optional<std::uint32_t> short_leaf(std::uint64_t first,
                                                        std::uint64_t last) const;

  struct SmallLeaf {
    std::uint32_t leaf;
    std::uint64_t fewest;  // samples of a step; see `Groups::fewest`
    bool operator==(const SmallLeaf&) const = default;
  };
  /// Batch nodes with a step of fewer than `samples`, or that may have one in some pass.
  [[nodiscard]] std::vector<SmallLeaf> leaves_below(std::uint64_t samples) const;

  /// The only batch node and how often it is repeated, if there is nothing else.
  struct Single {
    std::uint32_t leaf;
    Groups groups;
    std::uint64_t rounds;  // or kEndless
  };
  [[nodiscard]] std::optional<Single> single() const;

 private:
  struct Part;
  [[nodiscard]] std::size_t part_at(const std::vector<std::uint64_t>& ends,
                                    std::uint64_t number) const;
  /// Calls `visit(leaf, first, last)` for the steps of each batch node that may be among steps
  /// [first, last) of these, in some pass.
  template <typename Visit>
  void for_each_leaf(std::uint64_t first, std::uint64_t last, Visit visit) const;
  static Place row_of(const Part& leaf, Turn turn, std::uint64_t row);
  explicit Steps(std::shared_ptr<const Part> part) : part_(std::move(part)) {}
  std::shared_ptr<const Part> part_;
};

}  // namespace penstock
