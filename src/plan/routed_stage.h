#pragma once
// A stage that maps each position to one of its inputs, with its own turn and position there.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plan/stage.h"
#include "sample/rows.h"

namespace penstock {

/// The target of one position: which input, in which turn, at which position.
struct Target {
  std::size_t input = 0;
  Turn turn;
  std::uint64_t position = 0;
};
inline bool together(const Target& a, const Target& b) {
  return a.input == b.input && a.turn.round == b.turn.round && a.turn.lap == b.turn.lap;
}

/// Calls `body(target, input positions, first row)` for each run of rows that can be computed
/// together.
template <typename Route, typename Body>
Result<void> for_runs(std::span<const std::uint64_t> asked, const Context& context, Route route,
                      Body body) {
  const Scratch::Frame frame(context.scratch);
  std::uint64_t* const positions = context.scratch.array<std::uint64_t>(asked.size());
  for (std::size_t first = 0; first < asked.size();) {
    const Target target = route(asked[first]);
    std::size_t last = first;
    Target next = target;
    do {
      positions[last++] = next.position;
      if (last < asked.size()) next = route(asked[last]);
    } while (last < asked.size() && together(next, target));
    const Scratch::Frame run_frame(context.scratch);
    auto done = body(target, std::span(positions + first, last - first), first);
    if (!done) {
      done.failure().row += first;
      return done;
    }
    first = last;
  }
  return {};
}

/// Groups rows that can be computed together even if they are not adjacent. In a shuffled order
/// neighbors rarely belong together, and the stages below would be called once per row.
class GatheredRows {
 public:
  struct Group {
    Target target;  // of its first row
    std::size_t first = 0;
    std::size_t rows = 0;
  };

  /// Empty if runs are long enough, or there would be too many groups.
  template <typename Route>
  GatheredRows(std::span<const std::uint64_t> asked, const Context& context, Route route) {
    if (asked.size() < kWorthIt || starts_with_a_run(asked, route)) return;
    if (!gather(asked, context, route)) count_ = 0;
  }

  [[nodiscard]] std::span<const Group> all() const { return {groups_.data(), count_}; }
  [[nodiscard]] std::span<const std::uint64_t> positions(const Group& group) const {
    return {positions_ + group.first, group.rows};
  }
  /// The rows of the group, as row numbers of the block.
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
  bool gather(std::span<const std::uint64_t> asked, const Context& context, Route route) {
    auto* const group_of = context.scratch.array<std::uint8_t>(asked.size());
    auto* const positions = context.scratch.array<std::uint64_t>(asked.size());
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
    sort(group_of, positions, asked.size(), context);
    return true;
  }

  void sort(const std::uint8_t* group_of, const std::uint64_t* positions, std::size_t rows,
            const Context& context) {
    std::array<std::size_t, kGroupsMax> next;
    for (std::size_t group = 0, first = 0; group < count_; ++group) {
      groups_[group].first = next[group] = first;
      first += groups_[group].rows;
    }
    positions_ = context.scratch.array<std::uint64_t>(rows);
    places_ = context.scratch.array<std::uint32_t>(rows);
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

/// A stage that maps each position to an input; `Routing` has `Target operator()(ask, p)`.
template <typename Routing>
class RoutedStage final : public Stage {
 public:
  RoutedStage(std::vector<StagePtr> inputs, Routing routing, const ElementSpec& spec, IdSpace ids)
      : Stage(spec, std::move(ids)), inputs_(std::move(inputs)), routing_(std::move(routing)) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const override {
    (void)for_runs(ask.positions, context, route(ask),
                   [&](const Target& target, std::span<const std::uint64_t> positions,
                       std::size_t first) -> Result<void> {
                     inputs_[target.input]->identify({target.turn, positions}, ids + first,
                                                     context);
                     return {};
                   });
  }
  void collect_reads(const Ask& ask, const Context& context,
                     std::vector<PlannedRead>& reads) const override {
    (void)for_runs(ask.positions, context, route(ask),
                   [&](const Target& target, std::span<const std::uint64_t> positions,
                       std::size_t) -> Result<void> {
                     inputs_[target.input]->collect_reads({target.turn, positions}, context, reads);
                     return {};
                   });
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    if (may_gather(out)) {
      const Scratch::Frame frame(context.scratch);
      const GatheredRows groups(ask.positions, context, route(ask));
      if (!groups.all().empty()) return run_groups(groups, out, context);
    }
    return run_in_place(ask, out, context);
  }

 private:
  /// True for small rows of one size without failure flags, which identify their rows by address.
  static bool may_gather(const BlockView& out) {
    constexpr std::size_t kRowBytesMax = 4096;
    if (out.samples != nullptr || out.identity.failed != nullptr) return false;
    std::size_t bytes = 0;
    for (const Column& column : out.columns) {
      if (!column.dense() || column.others != nullptr) return false;
      bytes += column.row_bytes;
    }
    return bytes <= kRowBytesMax;
  }

  /// Runs all groups even after a failure, so that the failure of the first row is the one
  /// returned.
  Result<void> run_groups(const GatheredRows& groups, const BlockView& out,
                          const Context& context) const {
    Result<void> result;
    for (const GatheredRows::Group& group : groups.all()) {
      const Scratch::Frame frame(context.scratch);
      const ScratchBlock block(*out.spec, group.rows, context.scratch);
      auto done = inputs_[group.target.input]->produce({group.target.turn, groups.positions(group)},
                                                       block.view(), context);
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

  /// Computes each run of consecutive rows directly in its place in `out`.
  Result<void> run_in_place(const Ask& ask, const BlockView& out, const Context& context) const {
    return for_runs(
        ask.positions, context, route(ask),
        [&](const Target& target, std::span<const std::uint64_t> positions, std::size_t first) {
          return inputs_[target.input]->produce(
              {target.turn, positions}, cut_rows(out, first, positions.size(), context.scratch),
              context);
        });
  }

  /// Called several times per row: as a function call it costs 8 % of a shuffled repeat.
  auto route(const Ask& ask) const {
    return [this, &ask](std::uint64_t position)
               __attribute__((always_inline)) { return routing_(ask, position); };
  }

  std::vector<StagePtr> inputs_;
  Routing routing_;
};

template <typename Routing>
StagePtr routed_stage(std::vector<StagePtr> inputs, Routing routing, const ElementSpec& spec) {
  IdSpace ids;
  for (const StagePtr& input : inputs)
    ids.parts.insert(ids.parts.end(), input->ids().parts.begin(), input->ids().parts.end());
  return std::make_unique<RoutedStage<Routing>>(std::move(inputs), std::move(routing), spec,
                                                std::move(ids));
}

template <typename Routing>
StagePtr routed_stage(StagePtr input, Routing routing) {
  const ElementSpec spec = input->spec();
  std::vector<StagePtr> inputs;
  inputs.push_back(std::move(input));
  return routed_stage(std::move(inputs), std::move(routing), spec);
}

}  // namespace penstock
