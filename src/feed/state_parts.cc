// tested in src/feed/state_test.cc and src/feed/stream_test.cc
#include "feed/state_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/tail.h"
#include "penstock/error.h"

namespace penstock {

std::string order_difference(const std::vector<std::string>& theirs,
                             const std::vector<std::string>& ours) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::max(theirs.size(), ours.size()); ++i) {
    const std::string left = i < theirs.size() ? theirs[i] : "nothing";
    const std::string right = i < ours.size() ? ours[i] : "nothing";
    if (left.starts_with("and ")) break;  // the state's list was shortened here
    if (left != right)
      lines.push_back(fmt::format("node {}: state {}, dataset {}", i, left, right));
  }
  return lines.empty() ? "a later node" : fmt::format("{}", fmt::join(lines, "; "));
}

std::vector<Segment> segments_of(const State& state) {
  std::vector<Segment> segments;
  segments.reserve(state.sizes.size());
  for (const State::Size& size : state.sizes)
    segments.push_back({size.step, size.position, size.batch, rule_of(size.tail)});
  return segments;
}

State::Stream stream_state(const StreamPlace& place) {
  State::Stream stream;
  if (place.anchor) {
    stream.numbers = place.anchor->numbers;
    stream.texts = place.anchor->texts;
  }
  stream.next = place.next;
  stream.batch = place.batch;
  return stream;
}

void check_size(const State& state) {
  constexpr std::size_t kBytesMax = std::size_t{64} * 1024;
  if (!state.stream) return;
  if (const std::size_t bytes = state.to_json().size(); bytes > kBytesMax)
    throw StateError(fmt::format("where the stream is takes {} bytes, a state holds {} at most",
                                 bytes, kBytesMax),
                     {}, "let save() return less: a position, not the data");
}

}  // namespace penstock
