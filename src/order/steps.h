#pragma once
// How samples form steps: a small tree over the batch nodes of a dataset, closed under repeat,
// concatenate, take, skip, shard and shuffle of whole steps. Every question costs O(depth), and a
// binary search among the parts of a concatenate.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/mix.h"
#include "order/permutation.h"

namespace penstock {

inline constexpr std::uint64_t kEndless = UINT64_MAX;
/// A number of samples that only a walk over the steps would tell.
inline constexpr std::uint64_t kUncounted = UINT64_MAX - 1;
/// What one round of an endless repeat counts as when rounds of several repeats are combined.
inline constexpr std::uint64_t kEndlessRounds = 1ULL << 32;

/// The number of round `inner`, of `rounds`, inside round `outer`. Where it does not fit into 64
/// bits, as below three endless repeats, it is a hash: then still every round has its own.
constexpr std::uint64_t nested_round(std::uint64_t outer, std::uint64_t rounds,
                                     std::uint64_t inner) {
  std::uint64_t round = 0;
  const bool overflows =
      __builtin_mul_overflow(outer, rounds, &round) || __builtin_add_overflow(round, inner, &round);
  return overflows ? combine(outer, inner) : round;
}

/// What happens where the groups do not come out even. `pad` and `strict` group as `keep` does: the
/// cut adds empty slots for the one, the plan refuses what the other does not want.
enum class TailRule : std::uint8_t { keep, drop, even, wrap, pad, strict };

/// `count` samples in groups of `batch`.
struct Groups {
  std::uint64_t count = 0;
  std::uint64_t batch = 1;
  TailRule tail = TailRule::keep;

  [[nodiscard]] std::uint64_t steps() const;
  [[nodiscard]] std::uint64_t first(std::uint64_t step) const;
  [[nodiscard]] std::uint64_t size(std::uint64_t step) const;
  /// The step that holds `row` of what is delivered.
  [[nodiscard]] std::uint64_t step_of(std::uint64_t row) const;
  /// Samples that are delivered, which `drop` makes fewer than `count` and `wrap` more.
  [[nodiscard]] std::uint64_t delivered() const;
  /// `wrap`: the order starts again after so many samples; otherwise 0.
  [[nodiscard]] std::uint64_t period() const {
    return tail == TailRule::wrap && count != kEndless ? count : 0;
  }
  /// `pad`: slots of every step; otherwise 0.
  [[nodiscard]] std::uint64_t padded_to() const { return tail == TailRule::pad ? batch : 0; }
  /// True when every step holds `batch` samples.
  [[nodiscard]] bool divides() const { return count == kEndless || count % batch == 0; }
  /// Samples of the smallest of the first `among` steps, which is the last of them; kEndless where
  /// there is none, or where each is padded: every share of it then has rows.
  [[nodiscard]] std::uint64_t fewest(std::uint64_t among = kEndless) const;
};

/// Which time through the data: the pass, and the round of the repeats above, combined. A wrap
/// gives samples of the round once more, in its order: each time is a lap.
struct Turn {
  std::uint64_t pass = 0;
  std::uint64_t round = 0;
  std::uint64_t lap = 0;

  bool operator==(const Turn&) const = default;
  /// Differs each time that a sample comes in a pass.
  [[nodiscard]] std::uint64_t occurrence() const { return lap == 0 ? round : combine(round, lap); }
};

/// Rows of one batch node: `count` samples of its input from `first` on.
struct Place {
  std::uint32_t leaf = 0;
  Turn turn;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t period = 0;     // the order starts again after so many samples; 0: it does not
  std::uint64_t padded_to = 0;  // slots of the step, empty ones included; 0: none are
};

/// Consecutive samples in one turn.
struct Stretch {
  Turn turn;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
/// Rows of the step from `row` on, at most `rows`: a step that wraps comes to the end of the order
/// once or more often, and goes on at its start in another lap.
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

/// Immutable; copies share.
class Steps {
 public:
  /// The batch node number `leaf`.
  static Steps leaf(std::uint32_t leaf, Groups groups);
  [[nodiscard]] Steps repeated(std::uint64_t rounds) const;
  [[nodiscard]] Steps sliced(std::uint64_t first, std::uint64_t count) const;
  [[nodiscard]] Steps sharded(std::uint64_t count, std::uint64_t index) const;
  [[nodiscard]] Steps shuffled(StepShuffle shuffle) const;
  static Steps concatenated(const Steps& left, const Steps& right) {
    return concatenated(std::vector<Steps>{left, right});
  }
  /// At least one part; a step is found among them by binary search.
  static Steps concatenated(std::vector<Steps> parts);

  /// Number of steps, or kEndless.
  [[nodiscard]] std::uint64_t count() const;
  /// Number of samples that its steps hold, or kEndless, or kUncounted.
  [[nodiscard]] std::uint64_t rows() const;
  /// Number of samples that its steps pass by, dropped ones included; or as `rows`.
  [[nodiscard]] std::uint64_t span() const;
  /// True when steps come in the order of their samples: rows can be found by number.
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
    std::uint64_t fewest;  // samples of a step, as `Groups::fewest` counts
    bool operator==(const SmallLeaf&) const = default;
  };
  /// Batch nodes with a step of fewer than `samples`, or that may have one in some pass.
  [[nodiscard]] std::vector<SmallLeaf> leaves_below(std::uint64_t samples) const;

  /// The one batch node and how often it is repeated, when there is nothing else.
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
  /// Calls `visit(leaf, first, last)` for the steps of each batch node that may be among
  /// [first, last) of these, in some pass.
  template <typename Visit>
  void for_each_leaf(std::uint64_t first, std::uint64_t last, Visit visit) const;
  static Place row_of(const Part& leaf, Turn turn, std::uint64_t row);
  explicit Steps(std::shared_ptr<const Part> part) : part_(std::move(part)) {}
  std::shared_ptr<const Part> part_;
};

}  // namespace penstock
