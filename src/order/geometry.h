#pragma once
// The steps of one pass, numbered from 0, and what a position in it means. Where a dataset is one
// batch node (repeated or not) the position counts samples and a run may go on with another batch
// size: the pass is then a list of segments. Elsewhere it counts steps.

#include <cstdint>
#include <optional>
#include <vector>

#include "order/steps.h"

namespace penstock {

/// From `step` on, starting at `position`, batches hold `batch` samples and end as `tail` says.
struct Segment {
  std::uint64_t step = 0;
  std::uint64_t position = 0;
  std::uint64_t batch = 1;
  TailRule tail = TailRule::keep;
  bool operator==(const Segment&) const = default;
};

class Geometry {
 public:
  /// A pass from its start.
  explicit Geometry(Steps steps);
  /// A pass of which earlier runs delivered the part before `here`, with the batch sizes of
  /// `earlier` (ascending, the first at step 0). `elastic()` datasets only; what is left of the
  /// pass has the tail of `steps`.
  Geometry(Steps steps, std::vector<Segment> earlier, Segment here);

  [[nodiscard]] bool elastic() const { return single_.has_value(); }
  /// Number of steps of the pass, or kEndless.
  [[nodiscard]] std::uint64_t steps() const { return total_; }
  [[nodiscard]] Place step(std::uint64_t pass, std::uint64_t step) const;
  /// Position before `step`; the end of the pass is `span()`.
  [[nodiscard]] std::uint64_t position(std::uint64_t step) const;
  /// Samples (or steps) of the pass, or kEndless.
  [[nodiscard]] std::uint64_t span() const;
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  /// `elastic()` only: samples of the smallest step from the last segment on, as `Groups::fewest`
  /// counts.
  [[nodiscard]] std::uint64_t fewest() const;
  /// Samples of the round in which the last segment begins, from its position on.
  [[nodiscard]] Groups rest_of_round() const;

 private:
  [[nodiscard]] std::uint64_t count_steps() const;
  [[nodiscard]] Groups groups(const Segment& segment, std::uint64_t samples) const {
    return {samples, segment.batch, segment.tail};
  }
  [[nodiscard]] std::uint64_t steps_from(const Segment& segment) const;
  [[nodiscard]] const Segment& segment_of(std::uint64_t step) const;
  struct Spot {
    std::uint64_t round;
    std::uint64_t first;
    std::uint64_t count;
  };
  [[nodiscard]] Spot spot(const Segment& segment, std::uint64_t step) const;

  Steps steps_;
  std::optional<Steps::Single> single_;
  std::vector<Segment> segments_;
  std::uint64_t total_ = 0;
};

}  // namespace penstock
