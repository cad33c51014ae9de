#pragma once
// Parts of a state: what it holds of a stream and of batch sizes, and how it differs from a
// dataset.

#include <string>
#include <vector>

#include "order/geometry.h"
#include "penstock/state.h"
#include "run/sequencer.h"

namespace penstock {

/// What differs between a state's dataset and ours, line by line.
std::string order_difference(const std::vector<std::string>& theirs,
                             const std::vector<std::string>& ours);
std::vector<Segment> segments_of(const State& state);
State::Stream stream_state(const StreamPlace& place);
/// Throws StateError for a state of a stream that is too large to be saved often, on every rank.
void check_size(const State& state);

}  // namespace penstock
