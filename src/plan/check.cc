#include "plan/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "order/cut.h"
#include "plan/plan_data.h"
#include "plan/promise.h"

namespace penstock {
namespace {

/// Counts the deliveries of each sample. Uses one bit per sample if none may be delivered twice.
class Tally {
 public:
  explicit Tally(const Promise& promise) : promise_(promise) {
    once_ = std::ranges::all_of(promise.parts, [](const auto& part) { return part.times == 1; });
    const std::uint64_t ids_max = 1ULL << (once_ ? 35 : 30);  // 4 GiB
    if (promise.ids() > ids_max)
      throw ConfigError(fmt::format("check: {} samples are above {}", promise.ids(), ids_max), {},
                        "check the same steps and shares with fewer samples");
    if (once_) {
      bits_.resize((promise.ids() + 63) / 64);
    } else {
      counts_.resize(promise.ids());
    }
  }

  /// Returns false if the sample was already delivered as often as allowed.
  bool add(std::uint64_t id) {
    if (id >= promise_.ids()) return false;
    if (!once_) return counts_[id]++ < times(id);
    std::uint64_t& word = bits_[id / 64];
    const std::uint64_t bit = 1ULL << (id % 64);
    const bool first = (word & bit) == 0;
    word |= bit;
    return first;
  }
  [[nodiscard]] bool known(std::uint64_t id) const { return id < promise_.ids(); }

  /// Calls `body(id, missing)` for each sample that was delivered too rarely.
  template <typename Body>
  void for_missing(Body body) const {
    for (std::uint64_t id = 0; id < promise_.ids(); ++id) {
      if (once_ && id % 64 == 0 && bits_[id / 64] == UINT64_MAX) {
        id += 63;
        continue;
      }
      const std::uint64_t came = once_ ? bits_[id / 64] >> (id % 64) & 1 : counts_[id];
      if (const std::uint64_t wanted = once_ ? 1 : times(id); came < wanted)
        body(id, wanted - came);
    }
  }

 private:
  [[nodiscard]] std::uint64_t times(std::uint64_t id) const {
    return std::ranges::upper_bound(promise_.parts, id, {}, &Promise::Part::end)->times;
  }

  const Promise& promise_;
  bool once_ = true;
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint32_t> counts_;
};

/// Collects adjacent rows and identifies them in one call, since a share may have a single row.
class Walk {
 public:
  Walk(const PlanData& plan, Tally& tally, PassCheck& result)
      : plan_(plan), tally_(tally), result_(result) {}

  /// Adds all rows of one share of a step.
  void add(const Place& place, std::uint64_t step, std::uint64_t share, const Cut& cut) {
    const std::uint64_t rows = cut.size(share);
    const std::uint64_t first = rows == 0 ? 0 : cut.first(share);
    for (std::uint64_t done = 0; done < rows && !result_.wrong;) {
      const Stretch stretch = stretch_of(place, first + done, rows - done);
      if (place.leaf != leaf_ || stretch.turn.round != turn_.round ||
          stretch.turn.lap != turn_.lap || used_ == kRows)
        ask();
      leaf_ = place.leaf;
      turn_ = stretch.turn;
      const std::uint64_t taken = std::min<std::uint64_t>(stretch.count, kRows - used_);
      runs_.push_back({used_, step, share});
      for (std::uint64_t i = 0; i < taken; ++i) positions_[used_++] = stretch.first + i;
      done += taken;
    }
    result_.samples += rows;
  }

  void ask() {
    const Stage& samples = *plan_.program.chains[leaf_].samples;
    const Scratch::Frame frame(scratch_);
    if (used_ > 0) samples.identify({turn_, {positions_.data(), used_}}, ids_.data(), scratch_);
    for (std::size_t i = 0; i < used_ && !result_.wrong; ++i) {
      // Another lap repeats samples of the first one, as often as the tail policy says.
      if (turn_.lap > 0 ? tally_.known(ids_[i]) : tally_.add(ids_[i])) continue;
      const auto run = std::ranges::upper_bound(runs_, i, {}, &Run::first) - 1;
      result_.wrong = {
          samples.ids().key(ids_[i]), run->step, static_cast<std::uint32_t>(run->share),
          tally_.known(ids_[i]) ? "is delivered too often" : "is not a sample of this dataset"};
    }
    if (turn_.lap > 0) result_.repeated += used_;
    used_ = 0;
    runs_.clear();
  }

 private:
  static constexpr std::size_t kRows = 4096;
  struct Run {
    std::size_t first;  // the row of the share
    std::uint64_t step;
    std::uint64_t share;
  };

  const PlanData& plan_;
  Tally& tally_;
  PassCheck& result_;
  Scratch scratch_;
  std::uint32_t leaf_ = 0;
  Turn turn_;
  std::size_t used_ = 0;
  std::vector<Run> runs_;
  std::array<std::uint64_t, kRows> positions_;
  std::array<std::uint64_t, kRows> ids_;
};

/// Returns an error text if the sizes of the shares of a step are wrong.
std::optional<std::string> wrong_cut(const Place& place, const Cut& cut) {
  std::uint64_t rows = 0;
  for (std::uint64_t share = 0; share < cut.shares; ++share) {
    rows += cut.size(share);
    if (cut.size(share) > cut.size(0) || cut.size(0) - cut.size(share) > 1)
      return fmt::format("share 0 has {} samples, share {} has {}", cut.size(0), share,
                         cut.size(share));
  }
  if (place.padded_to > 0 && cut.slots() < cut.size(0))
    return fmt::format("{} samples in {} rows", cut.size(0), cut.slots());
  if (rows == place.count) return std::nullopt;
  return fmt::format("its shares hold {} of {} samples", rows, place.count);
}

SampleKey key_of(const PlanData& plan, std::uint64_t id) {
  // Ids ascend from chain to chain, in the order of the sources.
  SampleKey key;
  for (const LeafProgram& chain : plan.program.chains)
    if (chain.samples->ids().parts.front().first_id <= id) key = chain.samples->ids().key(id);
  return key;
}

/// Compares the undelivered samples with the number that tails drop.
void check_missing(const PlanData& plan, const Promise& promise, const Tally& tally,
                   PassCheck& result) {
  std::optional<std::uint64_t> first;
  std::vector<SampleKey> named;
  std::uint64_t missing = 0;
  tally.for_missing([&](std::uint64_t id, std::uint64_t times) {
    if (!first) first = id;
    if (named.size() < PassCheck::kNamedMax) named.push_back(key_of(plan, id));
    missing += times;
  });
  result.dropped = promise.dropped;
  if (promise.dropped > 0) result.dropped_first = named;
  if (missing == promise.dropped) return;
  result.wrong = {
      first ? std::optional(key_of(plan, *first)) : std::nullopt, result.steps, 0,
      fmt::format("{} samples are not delivered, {} should be dropped", missing, promise.dropped)};
}

}  // namespace

PassCheck check_pass(const PlanData& plan, std::uint64_t pass) {
  if (plan.program.stream)
    throw ConfigError("check: the samples of a stream are unknown until it is pulled");
  if (has_sequence(plan.program))
    throw ConfigError("check: the samples of a Sequence are unknown until a batch is requested");
  const std::uint64_t steps = plan.geometry.steps();
  if (steps == kEndless) throw ConfigError("check: the pass has no end", {}, "add take(n)");
  const Promise promise = promise_of(*plan.dataset.node(), {plan.options.tail});
  Tally tally(promise);
  PassCheck result;
  Walk walk(plan, tally, result);
  for (; result.steps < steps && !result.wrong; ++result.steps) {
    const Place place = plan.geometry.step(pass, result.steps);
    const Cut cut = cut_of(place, plan.options.shares.total);
    if (auto what = wrong_cut(place, cut)) {
      result.wrong = {std::nullopt, result.steps, 0, std::move(*what)};
      return result;
    }
    for (std::uint64_t share = 0; share < cut.shares; ++share)
      walk.add(place, result.steps, share, cut);
  }
  walk.ask();
  if (result.wrong) return result;
  const std::uint64_t planned = plan.program.steps.rows();
  if (planned != kUncounted && planned != result.samples)
    result.wrong = {
        std::nullopt, steps, 0,
        fmt::format("{} samples are delivered, {} are planned", result.samples, planned)};
  else if (promise.all)
    check_missing(plan, promise, tally, result);
  return result;
}

}  // namespace penstock
