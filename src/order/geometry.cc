#include "order/geometry.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace penstock {

Geometry::Geometry(Steps steps) : steps_(std::move(steps)), single_(steps_.single()) {
  segments_ = {
      {0, 0, single_ ? single_->groups.batch : 1, single_ ? single_->groups.tail : Tail::short_}};
  total_ = count_steps();
}

Geometry::Geometry(Steps steps, std::vector<Segment> earlier, Segment here)
    : steps_(std::move(steps)), single_(steps_.single()), segments_(std::move(earlier)) {
  PENSTOCK_CHECK(elastic());
  here.tail = single_->groups.tail;
  // Drops a segment that delivered nothing or continues the previous one unchanged.
  std::erase_if(segments_, [&](const Segment& segment) { return segment.step >= here.step; });
  if (!segments_.empty()) total_ = count_steps();
  const bool goes_on = !segments_.empty() && segments_.back().batch == here.batch &&
                       segments_.back().tail == here.tail && position(here.step) == here.position;
  if (!goes_on) segments_.push_back(here);
  if (segments_.size() > kSegmentsMax)
    segments_.erase(segments_.begin(), segments_.end() - std::ptrdiff_t{kSegmentsMax});
  total_ = count_steps();
}

Geometry::Geometry(Steps steps, std::vector<Segment> segments)
    : steps_(std::move(steps)), single_(steps_.single()), segments_(std::move(segments)) {
  PENSTOCK_CHECK(elastic() && !segments_.empty());
  total_ = count_steps();
}

const Segment& Geometry::segment_of(std::uint64_t step) const {
  const auto after = std::ranges::upper_bound(segments_, step, {}, &Segment::step);
  return after == segments_.begin() ? segments_.front() : *(after - 1);
}

Geometry::Spot Geometry::spot(const Segment& segment, std::uint64_t step) const {
  const std::uint64_t samples = single_->groups.count;
  const std::uint64_t ahead = step - segment.step;
  if (samples == kEndless) {
    return {0, segment.position + ahead * segment.batch, segment.batch};
  }
  // First the rest of the round in which the segment starts, then whole rounds.
  std::uint64_t round = samples == 0 ? 0 : segment.position / samples;
  const std::uint64_t offset = samples == 0 ? 0 : segment.position % samples;
  const Groups rest = groups(segment, samples - offset);
  if (ahead < rest.steps()) return {round, offset + rest.first(ahead), rest.size(ahead)};
  const Groups whole = groups(segment, samples);
  const std::uint64_t beyond = ahead - rest.steps();
  if (whole.steps() == 0) return {single_->rounds, 0, 0};
  round += 1 + beyond / whole.steps();
  const std::uint64_t local = beyond % whole.steps();
  return {round, whole.first(local), whole.size(local)};
}

std::uint64_t Geometry::steps_from(const Segment& segment) const {
  const std::uint64_t samples = single_->groups.count;
  if (samples == 0 || single_->rounds == 0) return 0;
  if (samples == kEndless) return kEndless;
  const Groups rest = groups(segment, samples - segment.position % samples);
  const Groups whole = groups(segment, samples);
  if (single_->rounds == kEndless) return whole.steps() == 0 ? rest.steps() : kEndless;
  const std::uint64_t round = segment.position / samples;
  if (round >= single_->rounds) return 0;
  return rest.steps() + (single_->rounds - round - 1) * whole.steps();
}

std::uint64_t Geometry::count_steps() const {
  if (!elastic()) return steps_.count();
  const std::uint64_t left = steps_from(segments_.back());
  return left == kEndless ? kEndless : segments_.back().step + left;
}

std::uint64_t Geometry::span() const {
  return elastic() ? steps_.span() : steps_.count();
}

Place Geometry::step(std::uint64_t pass, std::uint64_t step) const {
  PENSTOCK_CHECK_LT(step, steps());
  if (!elastic()) return steps_.step({pass, 0}, step);
  const Segment& segment = segment_of(step);
  const Spot found = spot(segment, step);
  const Groups round = groups(segment, single_->groups.count);
  return {single_->leaf, {pass, found.round}, found.first,
          found.count,   round.period(),      round.padded_to()};
}

Groups Geometry::rest_of_round() const {
  PENSTOCK_CHECK(elastic());
  const std::uint64_t samples = single_->groups.count;
  const bool part = samples != 0 && samples != kEndless;
  return groups(segments_.back(), part ? samples - segments_.back().position % samples : samples);
}

std::uint64_t Geometry::fewest() const {
  PENSTOCK_CHECK(elastic());
  const Segment& segment = segments_.back();
  const std::uint64_t samples = single_->groups.count;
  if (samples == 0 || single_->rounds == 0) return kEndless;
  if (samples == kEndless) return groups(segment, samples).fewest();
  const std::uint64_t round = segment.position / samples;
  if (round >= single_->rounds) return kEndless;
  const std::uint64_t rest = rest_of_round().fewest();
  const bool last_round = single_->rounds != kEndless && round + 1 == single_->rounds;
  return last_round ? rest : std::min(rest, groups(segment, samples).fewest());
}

std::uint64_t Geometry::position(std::uint64_t step) const {
  if (!elastic()) return step;
  if (step >= steps()) return span();
  const Segment& segment = segment_of(step);
  if (step == segment.step) return segment.position;
  const Spot found = spot(segment, step);
  return single_->groups.count == kEndless ? found.first
                                           : found.round * single_->groups.count + found.first;
}

}  // namespace penstock
