#pragma once
// The steps of one pass, numbered from 0, and the meaning of a position in it. If a dataset is one
// batch node (repeated or not), the position counts samples and a run may resume with another batch
// size: the pass is then a list of segments. Otherwise it counts steps.

#include <cstdint>
#include <optional>
#include <vector>

#include "order/steps.h"

namespace penstock {

/// From `step` on, starting at `position`, batches have `batch` samples and end as `tail` says.
struct Segment {
  std::uint64_t step = 0;
  std::uint64_t position = 0;
  std::uint64_t batch = 1;
  Tail tail = Tail::short_;
  bool operator==(const Segment&) const = default;
};

class Geometry {
 public:
  /// A pass from its start.
  explicit Geometry(Steps steps);
  /// A pass of which earlier runs delivered the part before `here`, with the batch sizes of
  /// `earlier` (ascending). `elastic()` datasets only; the rest of the pass has the tail of
  /// `steps`. Only the last kSegmentsMax segments are kept, so that a state stays small: steps
  /// before `first_known()` cannot be computed.
  Geometry(Steps steps, std::vector<Segment> earlier, Segment here);
  /// A pass with these batch sizes, up to its end.
  Geometry(Steps steps, std::vector<Segment> segments);

  [[nodiscard]] bool elastic() const { return single_.has_value(); }
  /// Number of steps of the pass, or kEndless.
  [[nodiscard]] std::uint64_t steps() const { return total_; }
  [[nodiscard]] Place step(std::uint64_t pass, std::uint64_t step) const;
  /// Position before `step`; the end of the pass is `span()`.
  [[nodiscard]] std::uint64_t position(std::uint64_t step) const;
  /// Samples (or steps) of the pass, or kEndless.
  [[nodiscard]] std::uint64_t span() const;
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  static constexpr std::size_t kSegmentsMax = 8;
  [[nodiscard]] std::uint64_t first_known() const { return segments_.front().step; }
  /// `elastic()` only: samples of the smallest step from the last segment on; see `Groups::fewest`.
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
