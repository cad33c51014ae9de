// Stages that decide which rows: slices, shards, shuffles, repeats, concatenation, zip, unbatch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "order/permutation.h"
#include "plan/stages.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// Where one position goes: which input, in which turn, at which position there.
struct Target {
  std::size_t input = 0;
  Turn turn;
  std::uint64_t position = 0;
};
bool together(const Target& a, const Target& b) {
  return a.input == b.input && a.turn.round == b.turn.round && a.turn.lap == b.turn.lap;
}

/// Calls `body(target, positions there, first row)` for each run of rows that go together.
template <typename Route, typename Body>
Result<void> for_runs(std::span<const std::uint64_t> asked, Scratch& scratch, Route route,
                      Body body) {
  const Scratch::Frame frame(scratch);
  std::uint64_t* const positions = scratch.array<std::uint64_t>(asked.size());
  for (std::size_t first = 0; first < asked.size();) {
    const Target target = route(asked[first]);
    std::size_t last = first;
    Target next = target;
    do {
      positions[last++] = next.position;
      if (last < asked.size()) next = route(asked[last]);
    } while (last < asked.size() && together(next, target));
    const Scratch::Frame run_frame(scratch);
    auto done = body(target, std::span(positions + first, last - first), first);
    if (!done) {
      done.failure().row += first;
      return done;
    }
    first = last;
  }
  return {};
}

/// Rows that go together, wherever they stand. In a shuffled order neighbours rarely do, and every
/// stage below would be entered for each row alone.
class Groups {
 public:
  struct Group {
    Target target;  // of its first row
    std::size_t first = 0;
    std::size_t rows = 0;
  };

  /// Empty when runs are long enough, or there would be too many groups to be worth it.
  template <typename Route>
  Groups(std::span<const std::uint64_t> asked, Scratch& scratch, Route route) {
    if (asked.size() < kWorthIt || starts_with_a_run(asked, route)) return;
    if (!gather(asked, scratch, route)) count_ = 0;
  }

  [[nodiscard]] std::span<const Group> all() const { return {groups_.data(), count_}; }
  [[nodiscard]] std::span<const std::uint64_t> positions(const Group& group) const {
    return {positions_ + group.first, group.rows};
  }
  /// Where its rows stand in the block.
  [[nodiscard]] std::span<const std::uint32_t> places(const Group& group) const {
    return {places_ + group.first, group.rows};
  }

 private:
  static constexpr std::size_t kWorthIt = 8;
  static constexpr std::size_t kGroupsMax = 64;
  static constexpr std::size_t kRunMin = 4;

  template <typename Route>
  static bool starts_with_a_run(std::span<const std::uint64_t> asked, Route route) {
    const Target target = route(asked[0]);
    for (std::size_t row = 1; row < kWorthIt; ++row)
      if (!together(target, route(asked[row]))) return false;
    return true;
  }

  template <typename Route>
  bool gather(std::span<const std::uint64_t> asked, Scratch& scratch, Route route) {
    auto* const group_of = scratch.array<std::uint8_t>(asked.size());
    auto* const positions = scratch.array<std::uint64_t>(asked.size());
    std::size_t runs = 0;
    std::size_t group = 0;
    for (std::size_t row = 0; row < asked.size(); ++row) {
      const Target target = route(asked[row]);
      if (count_ == 0 || !together(groups_[group].target, target)) {
        ++runs;
        for (group = 0; group < count_ && !together(groups_[group].target, target);) ++group;
        if (group == kGroupsMax) return false;
        if (group == count_) groups_[count_++] = {target, 0, 0};
      }
      ++groups_[group].rows;
      group_of[row] = static_cast<std::uint8_t>(group);
      positions[row] = target.position;
    }
    if (runs * kRunMin < asked.size() || count_ * 2 > asked.size()) return false;
    sort(group_of, positions, asked.size(), scratch);
    return true;
  }

  void sort(const std::uint8_t* group_of, const std::uint64_t* positions, std::size_t rows,
            Scratch& scratch) {
    std::array<std::size_t, kGroupsMax> next;
    for (std::size_t group = 0, first = 0; group < count_; ++group) {
      groups_[group].first = next[group] = first;
      first += groups_[group].rows;
    }
    positions_ = scratch.array<std::uint64_t>(rows);
    places_ = scratch.array<std::uint32_t>(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t to = next[group_of[row]]++;
      positions_[to] = positions[row];
      places_[to] = static_cast<std::uint32_t>(row);
    }
  }

  std::array<Group, kGroupsMax> groups_;
  std::size_t count_ = 0;
  std::uint64_t* positions_ = nullptr;
  std::uint32_t* places_ = nullptr;
};

/// A stage that sends each position somewhere else; `Routing` has `Target operator()(ask, p)`.
template <typename Routing>
class RoutedStage final : public Stage {
 public:
  RoutedStage(std::vector<StagePtr> inputs, Routing routing, const ElementSpec& spec, IdSpace ids)
      : Stage(spec, std::move(ids)), inputs_(std::move(inputs)), routing_(std::move(routing)) {}
  void identify(const Ask& ask, std::uint64_t* ids, Scratch& scratch) const override {
    (void)for_runs(ask.positions, scratch, route(ask),
                   [&](const Target& target, std::span<const std::uint64_t> positions,
                       std::size_t first) -> Result<void> {
                     inputs_[target.input]->identify({target.turn, positions}, ids + first,
                                                     scratch);
                     return {};
                   });
  }
  void collect_reads(const Ask& ask, Scratch& scratch,
                     std::vector<PlannedRead>& reads) const override {
    (void)for_runs(ask.positions, scratch, route(ask),
                   [&](const Target& target, std::span<const std::uint64_t> positions,
                       std::size_t) -> Result<void> {
                     inputs_[target.input]->collect_reads({target.turn, positions}, scratch, reads);
                     return {};
                   });
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    if (may_gather(out)) {
      const Scratch::Frame frame(scratch);
      const Groups groups(ask.positions, scratch, route(ask));
      if (!groups.all().empty()) return run_groups(groups, out, scratch);
    }
    return run_in_place(ask, out, scratch);
  }

 private:
  /// Small rows of one size; flags say by their address which row they are for.
  static bool may_gather(const BlockView& out) {
    constexpr std::size_t kRowBytesMax = 4096;
    if (out.samples != nullptr || out.identity.failed != nullptr) return false;
    std::size_t bytes = 0;
    for (const Column& column : out.columns) {
      if (!column.dense()) return false;
      bytes += column.row_bytes;
    }
    return bytes <= kRowBytesMax;
  }

  /// All groups run, whatever fails in one: the failure that is told is that of the first row.
  Result<void> run_groups(const Groups& groups, const BlockView& out, Scratch& scratch) const {
    Result<void> result;
    for (const Groups::Group& group : groups.all()) {
      const Scratch::Frame frame(scratch);
      const ScratchBlock block(*out.spec, group.rows, scratch);
      auto done = inputs_[group.target.input]->produce({group.target.turn, groups.positions(group)},
                                                       block.view(), scratch);
      const std::span<const std::uint32_t> places = groups.places(group);
      if (!done) {
        const std::size_t bad = std::min(done.failure().row, group.rows - 1);
        scatter_rows(block.view(), out, places.first(bad));
        done.failure().row = places[bad];
        if (result || done.failure().row < result.failure().row) result = std::move(done);
        continue;
      }
      scatter_rows(block.view(), out, places);
    }
    return result;
  }

  /// Asks each input for its run of consecutive rows, straight into their place in `out`.
  Result<void> run_in_place(const Ask& ask, const BlockView& out, Scratch& scratch) const {
    return for_runs(
        ask.positions, scratch, route(ask),
        [&](const Target& target, std::span<const std::uint64_t> positions, std::size_t first) {
          return inputs_[target.input]->produce(
              {target.turn, positions}, cut_rows(out, first, positions.size(), scratch), scratch);
        });
  }

  auto route(const Ask& ask) const {
    return [this, &ask](std::uint64_t position) { return routing_(ask, position); };
  }

  std::vector<StagePtr> inputs_;
  Routing routing_;
};

/// A stage that asks its one input for other positions; `Moving` has `void operator()(ask, out)`.
template <typename Moving>
class MovedStage final : public Stage {
 public:
  MovedStage(StagePtr input, Moving moving)
      : Stage(input->spec(), input->ids()), input_(std::move(input)), moving_(std::move(moving)) {}
  void identify(const Ask& ask, std::uint64_t* ids, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    input_->identify({ask.turn, moved(ask, scratch)}, ids, scratch);
  }
  void collect_reads(const Ask& ask, Scratch& scratch,
                     std::vector<PlannedRead>& reads) const override {
    const Scratch::Frame frame(scratch);
    input_->collect_reads({ask.turn, moved(ask, scratch)}, scratch, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    return input_->produce({ask.turn, moved(ask, scratch)}, out, scratch);
  }

 private:
  std::span<const std::uint64_t> moved(const Ask& ask, Scratch& scratch) const {
    const std::span positions(scratch.array<std::uint64_t>(ask.positions.size()),
                              ask.positions.size());
    moving_(ask, positions);
    return positions;
  }

  StagePtr input_;
  Moving moving_;
};
template <typename Moving>
StagePtr moved_stage(StagePtr input, Moving moving) {
  return std::make_unique<MovedStage<Moving>>(std::move(input), std::move(moving));
}

using Positions = std::span<std::uint64_t>;

struct Stride {
  std::uint64_t first;
  std::uint64_t stride;
  void operator()(const Ask& ask, Positions out) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + stride * ask.positions[i];
  }
};

struct Shuffle {
  std::uint64_t size;
  StepShuffle order;
  void operator()(const Ask& ask, Positions out) const {
    std::ranges::copy(ask.positions, out.begin());
    const Turn key = order.reshuffle ? ask.turn : Turn{};
    Permutation(size, {order.seed, key.pass, key.round}).apply(out);
  }
};

struct Window {
  std::uint64_t size;
  std::uint64_t window;
  StepShuffle order;
  void operator()(const Ask& ask, Positions out) const {
    const Turn key = order.reshuffle ? ask.turn : Turn{};
    for (std::size_t first = 0; first < out.size();) {
      const std::uint64_t which = ask.positions[first] / window;
      const std::uint64_t base = which * window;
      std::size_t end = first;
      for (; end < out.size() && ask.positions[end] / window == which; ++end)
        out[end] = ask.positions[end] - base;
      Permutation(std::min(window, size - base),
                  {window_seed(order.seed, which), key.pass, key.round})
          .apply(out.subspan(first, end - first));
      for (; first < end; ++first) out[first] += base;
    }
  }
};

struct Select {
  std::shared_ptr<const Chosen> chosen;
  void operator()(const Ask& ask, Positions out) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = (*chosen)[ask.positions[i]];
  }
};

struct Repeat {
  std::uint64_t size;
  std::uint64_t rounds;
  Target operator()(const Ask& ask, std::uint64_t position) const {
    const std::uint64_t round = position / size;
    return {0,
            {ask.turn.pass, nested_round(ask.turn.round, rounds, round), ask.turn.lap},
            position - round * size};
  }
};

struct Concatenate {
  std::vector<std::uint64_t> ends;
  Target operator()(const Ask& ask, std::uint64_t position) const {
    if (position < ends.front()) return {0, ask.turn, position};
    const auto found = std::ranges::upper_bound(ends, position);
    return {static_cast<std::size_t>(found - ends.begin()), ask.turn, position - *(found - 1)};
  }
};

struct Unbatch {
  Steps steps;
  Target operator()(const Ask& ask, std::uint64_t position) const {
    const Place place = steps.row(ask.turn, position);
    return {place.leaf, place.turn, place.first};
  }
};

template <typename Routing>
StagePtr routed_stage(std::vector<StagePtr> inputs, Routing routing, const ElementSpec& spec) {
  IdSpace ids;
  for (const StagePtr& input : inputs)
    ids.parts.insert(ids.parts.end(), input->ids().parts.begin(), input->ids().parts.end());
  return std::make_unique<RoutedStage<Routing>>(std::move(inputs), std::move(routing), spec,
                                                std::move(ids));
}

/// Tuples of its parts; with `numbered` the first part is the position itself.
class ZipStage final : public Stage {
 public:
  ZipStage(std::vector<StagePtr> parts, bool numbered, const ElementSpec& spec)
      : Stage(spec, parts.front()->ids()), parts_(std::move(parts)), numbered_(numbered) {}
  void identify(const Ask& ask, std::uint64_t* ids, Scratch& scratch) const override {
    parts_.front()->identify(ask, ids, scratch);
  }
  void collect_reads(const Ask& ask, Scratch& scratch,
                     std::vector<PlannedRead>& reads) const override {
    for (const StagePtr& part : parts_) part->collect_reads(ask, scratch, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    return spec().known ? run_columns(ask, out, scratch) : run_samples(ask, out, scratch);
  }

 private:
  /// The first part says who the rows are; the others need an identity only for themselves.
  static Identity identity_for(std::size_t part, const BlockView& out, Scratch& scratch) {
    if (part == 0) return out.identity;
    return {scratch.array<std::uint64_t>(out.rows), scratch.array<std::uint64_t>(out.rows),
            out.identity.failed, out.identity.failures};
  }

  Result<void> run_columns(const Ask& ask, const BlockView& out, Scratch& scratch) const {
    std::size_t column = 0;
    if (numbered_) {
      auto* const numbers = reinterpret_cast<std::uint64_t*>(out.columns[column++].data);
      std::ranges::copy(ask.positions, numbers);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      BlockView part;
      part.rows = out.rows;
      part.spec = &parts_[i]->spec();
      part.columns = out.columns.subspan(column, part.spec->fields.size());
      part.identity = identity_for(i, out, scratch);
      if (auto done = parts_[i]->produce(ask, part, scratch); !done) return done;
      column += part.spec->fields.size();
    }
    return {};
  }

  Result<void> run_samples(const Ask& ask, const BlockView& out, Scratch& scratch) const {
    std::vector<std::unique_ptr<ScratchBlock>> blocks;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      blocks.push_back(std::make_unique<ScratchBlock>(parts_[i]->spec(), out.rows, scratch,
                                                      identity_for(i, out, scratch)));
      if (auto done = parts_[i]->produce(ask, blocks.back()->view(), scratch); !done) return done;
    }
    for (std::size_t row = 0; row < out.rows; ++row) {
      if (out.identity.failed != nullptr && out.identity.failed[row] != 0) continue;
      std::vector<Sample> tuple;
      if (numbered_)
        tuple.emplace_back(Tensor::scalar(static_cast<std::int64_t>(ask.positions[row])));
      for (const auto& block : blocks) tuple.push_back(read_row(block->view(), row));
      if (const auto wrong = write_row(out, row, Sample::tuple(std::move(tuple))))
        return at_sample(Failure{*wrong, {}, {}, nullptr, row}, ids(), out);
    }
    return {};
  }

  std::vector<StagePtr> parts_;
  bool numbered_;
};

std::vector<StagePtr> only(StagePtr input) {
  std::vector<StagePtr> inputs;
  inputs.push_back(std::move(input));
  return inputs;
}

}  // namespace

StagePtr stride_stage(StagePtr input, std::uint64_t first, std::uint64_t stride) {
  if (first == 0 && stride == 1) return input;
  return moved_stage(std::move(input), Stride{first, stride});
}
StagePtr shuffle_stage(StagePtr input, std::uint64_t size, StepShuffle order) {
  return moved_stage(std::move(input), Shuffle{size, order});
}
StagePtr window_stage(StagePtr input, std::uint64_t size, std::uint64_t window, StepShuffle order) {
  return moved_stage(std::move(input), Window{size, window, order});
}
StagePtr select_stage(StagePtr input, std::shared_ptr<const Chosen> chosen) {
  return moved_stage(std::move(input), Select{std::move(chosen)});
}
StagePtr repeat_stage(StagePtr input, std::uint64_t size, std::uint64_t rounds) {
  const ElementSpec spec = input->spec();
  return routed_stage(only(std::move(input)), Repeat{size, rounds}, spec);
}
StagePtr concatenate_stage(std::vector<StagePtr> parts, std::vector<std::uint64_t> ends,
                           const ElementSpec& spec) {
  return routed_stage(std::move(parts), Concatenate{std::move(ends)}, spec);
}
StagePtr zip_stage(std::vector<StagePtr> parts, const ElementSpec& spec) {
  return std::make_unique<ZipStage>(std::move(parts), false, spec);
}
StagePtr enumerate_stage(StagePtr input, const ElementSpec& spec) {
  return std::make_unique<ZipStage>(only(std::move(input)), true, spec);
}
StagePtr unbatch_stage(std::vector<StagePtr> leaves, Steps steps, const ElementSpec& spec) {
  return routed_stage(std::move(leaves), Unbatch{std::move(steps)}, spec);
}

}  // namespace penstock
