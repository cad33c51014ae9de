// Converts the position of an iterator to a state and back.
// tested in src/feed/state_test.cc and tests/every_position_test.cc
#include <fmt/ranges.h>

#include "feed/iterator.h"
#include "graph/tail.h"
#include "plan/plan_data.h"

namespace penstock {
namespace {

/// Earlier versions assigned each sample to a part at random.
bool is_old_split(const std::string& part) {
  return part.starts_with("split(") && part.find("part [") != std::string::npos;
}
constexpr const char* kOldSplit = " (the version that saved it chose other samples in split())";

/// The differences between a state's dataset and ours, line by line.
std::string order_difference(const std::vector<std::string>& theirs,
                             const std::vector<std::string>& ours) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::max(theirs.size(), ours.size()); ++i) {
    const std::string left = i < theirs.size() ? theirs[i] : "nothing";
    const std::string right = i < ours.size() ? ours[i] : "nothing";
    if (left.starts_with("and ")) break;  // the state's list was shortened here
    if (left != right)
      lines.push_back(fmt::format("node {}: state {}, dataset {}{}", i, left, right,
                                  is_old_split(left) ? kOldSplit : ""));
  }
  return lines.empty() ? "a later node" : fmt::format("{}", fmt::join(lines, "; "));
}

std::vector<Segment> segments_of(const State& state) {
  std::vector<Segment> segments;
  segments.reserve(state.sizes.size());
  for (const State::Size& size : state.sizes)
    segments.push_back({size.step, size.position, size.batch, size.tail});
  return segments;
}

/// Returns an error text if the batch sizes in a state are inconsistent: each must start where the
/// earlier ones end, and so must the state itself.
std::optional<std::string> wrong_sizes(const Steps& steps, const State& state) {
  std::vector<Segment> all = segments_of(state);
  if (all.empty()) return "it has no batch sizes";
  if (all.size() < Geometry::kSegmentsMax && (all.front().step != 0 || all.front().position != 0))
    return "its batch sizes do not start at the start";
  // The last one may not have delivered a step yet.
  if (all.size() > 1 && all.back().step == state.step && all.back().position == state.position)
    all.pop_back();
  std::vector<Segment> before;
  for (std::size_t i = 0; i < all.size(); ++i) {
    before.push_back(all[i]);
    const bool last = i + 1 == all.size();
    const std::uint64_t step = last ? state.step : all[i + 1].step;
    const std::uint64_t position = last ? state.position : all[i + 1].position;
    const Geometry reached(steps, before);
    if (step > reached.steps() || step <= all[i].step || reached.position(step) != position)
      return fmt::format("position {} at step {}, with batches of {} from step {} on", position,
                         step, all[i].batch, all[i].step);
  }
  return std::nullopt;
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

/// The state of a stream is limited too: it is saved often, on every rank.
void check_size(const State& state) {
  constexpr std::size_t kBytesMax = std::size_t{64} * 1024;
  if (!state.stream) return;
  if (const std::size_t bytes = state.to_json().size(); bytes > kBytesMax)
    throw StateError(
        fmt::format("the position of the stream takes {} bytes, a state holds at most {}", bytes,
                    kBytesMax),
        {}, "let save() return less: a position, not the data");
}

}  // namespace

State Iterator::Impl::state() {
  State state;
  state.epoch = epoch_;
  state.step = step_;
  state.counts_samples = counts_samples();
  StreamPlace place = stream_;
  bool ended = false;
  if (streamed() && step_ > 0) {
    // Without a run (it was stopped), or with a slow source, it is unknown whether a step follows.
    // A state must be saved within the grace period of a SIGTERM, so `restore` finds out.
    constexpr Nanoseconds kPatience = std::chrono::seconds(1);
    ended = run_ && !run_->stopped() &&
            attempt([&] { return run_->has_next_within(kPatience); }) == std::optional(false);
    if (run_) place = run_->stream_place();
    state.position = counts_samples() ? place.position : step_;
  } else if (step_ > 0) {
    ended = at_end();
    state.position = geometry_.position(step_);
  }
  if (ended) {  // after the last batch, the state is the start of the next epoch
    state.epoch = epoch_ + 1;
    state.step = state.position = 0;
  } else if (streamed()) {
    if (step_ > 0) state.stream = stream_state(place);
  } else if (geometry_.elastic() && step_ > 0) {
    for (const Segment& segment : geometry_.segments())
      state.sizes.push_back({segment.step, segment.position, segment.batch, segment.tail});
  }
  if (wants_drawn_seed(*plan_.dataset().node())) state.drawn_seed = plan_.data()->drawn_seed;
  state.digests = plan_.digests();
  state.order = order_lines(*plan_.dataset().node(), plan_.data()->options.tail);
  check_size(state);
  return state;
}

void Iterator::Impl::go_to_place_of(const State& state) {
  const Digests ours = plan_.digests();
  if (state.digests.order != ours.order)
    throw StateError(
        fmt::format("the state is of another dataset: {}",
                    order_difference(state.order, order_lines(*plan_.dataset().node(),
                                                              plan_.data()->options.tail))),
        here(), "build the dataset as it was when the state was saved");
  if (state.digests.values != ours.values)
    penstock::report(
        "restore: the order of samples is the same, but functions, ops or the library changed "
        "since the state was saved");
  if (state.drawn_seed && *state.drawn_seed != plan_.data()->drawn_seed) {
    PlanOptions options = plan_.data()->options;
    options.drawn_seed = state.drawn_seed;
    stop_run();
    plan_ = Plan(plan_.dataset(), options);
  }
  const Geometry& fresh = plan_.data()->geometry;
  const auto refuse = [&](const std::string& why) {
    throw StateError(fmt::format("the state does not fit: {}", why), here());
  };
  if (state.counts_samples != counts_samples()) refuse("it counts in another unit");
  if (state.step == 0 && state.position != 0) refuse("a position without a step");
  if (streamed()) {
    if ((state.step > 0) != state.stream.has_value())
      refuse(state.stream ? "an anchor without a step" : "it is of a stream and has no anchor");
    const bool possible =
        counts_samples() ? state.position >= state.step : state.position == state.step;
    if (!possible) refuse(fmt::format("position {} at step {}", state.position, state.step));
    StreamPlace place;
    if (state.stream)
      place = {Anchor{state.stream->numbers, state.stream->texts}, state.position,
               state.stream->next, state.stream->batch};
    return go_to(state.epoch, state.step, fresh, std::move(place));
  }
  if (!fresh.elastic()) {
    if (state.step != state.position) refuse("step and position differ");
    if (state.step > fresh.steps()) refuse(fmt::format("step {} of {}", state.step, fresh.steps()));
    return go_to(state.epoch, state.step, fresh);
  }
  if (state.position > fresh.span())
    refuse(fmt::format("position {} of {} samples", state.position, fresh.span()));
  if (state.step == 0) return go_to(state.epoch, 0, fresh);
  if (const auto wrong = wrong_sizes(plan_.data()->program.steps, state)) refuse(*wrong);
  const std::uint64_t batch = plan_.batch_samples();
  Geometry resumed(plan_.data()->program.steps, segments_of(state),
                   {state.step, state.position, batch});
  if (const Groups rest = resumed.rest_of_round(); rest.tail == Tail::strict && !rest.divides())
    refuse(
        fmt::format("tail=strict, and batches of {} do not divide the {} samples that are left; "
                    "continue with a batch size that does, or with tail=short",
                    rest.batch, rest.count));
  if (const std::uint64_t fewest = resumed.fewest();
      refuses_empty() && fewest < plan_.shares().total)
    refuse(
        fmt::format("{} of {} shares have no sample in a step of {} of the rest; continue with "
                    "another batch size, with tail=pad, or with empty=deliver",
                    plan_.shares().total - fewest, plan_.shares().total, fewest));
  go_to(state.epoch, state.step, std::move(resumed));
}

}  // namespace penstock
