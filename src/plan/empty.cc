#include "plan/empty.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "graph/tail.h"

namespace penstock {
namespace {

bool fills_all(const Groups& groups, std::uint64_t shares) {
  return groups.steps() > 0 && groups.fewest() >= shares;
}

/// The next larger batch size with which, under the same policy, every share has a sample.
std::optional<std::uint64_t> size_that_fills(const GroupsAndShares& given) {
  constexpr std::uint64_t kLookMax = 1 << 12;
  const auto& [groups, shares] = given;
  const std::uint64_t least = std::max(groups.batch + 1, shares);
  for (std::uint64_t size = least; size < least + kLookMax && size <= groups.count; ++size)
    if (fills_all({groups.count, size, groups.tail}, shares)) return size;
  return std::nullopt;
}

std::string known_remedies(const GroupsAndShares& given) {
  const auto& [groups, shares] = given;
  std::vector<std::string> remedies;
  for (const Tail tail : {Tail::even, Tail::pad, Tail::drop, Tail::wrap}) {
    const Groups other{groups.count, groups.batch, tail};
    if (!fills_all(other, shares)) continue;
    const std::uint64_t lost =
        other.delivered() < groups.count ? groups.count - other.delivered() : 0;
    remedies.push_back(fmt::format("tail={}{}", tail_name(tail),
                                   lost > 0 ? fmt::format(" (loses {})", lost) : ""));
  }
  if (const auto size = size_that_fills(given)) remedies.push_back(fmt::format("batch({})", *size));
  if (const std::uint64_t fewest = groups.fewest(); fewest > 0)
    remedies.push_back(fmt::format("at most {} process{}", fewest, fewest == 1 ? "" : "es"));
  remedies.emplace_back("empty=deliver if the loop can skip a step");
  return fmt::format("any of these works: {}", fmt::join(remedies, ", "));
}

[[noreturn]] void refuse(const std::string& what, const GroupsAndShares& given,
                         const std::string& remedies) {
  const auto& [groups, shares] = given;
  throw ConfigError(
      fmt::format("batch({}): {} (N = {} samples, G = {}, R = {} shares)", groups.batch, what,
                  groups.count == kEndless ? "unknown" : fmt::format("{}", groups.count),
                  groups.batch, shares),
      {}, remedies);
}

/// The size of the last step of a stream is unknown until it ends.
void refuse_stream(const GroupsAndShares& given) {
  const auto& [groups, shares] = given;
  const bool full = groups.tail == Tail::pad || groups.tail == Tail::drop;
  const bool enough = groups.tail == Tail::pad || groups.batch >= shares;
  if (full && enough) return;
  const std::string deliver = "empty=deliver if the loop can skip a step";
  const bool drops = groups.batch >= shares;
  refuse(enough ? "the last step of a stream may leave shares without a sample"
                : fmt::format("{} shares have no sample in any step", shares - groups.batch),
         given,
         fmt::format("any of these works: tail=pad, {}{}", drops ? "tail=drop, " : "", deliver));
}

}  // namespace

void refuse_empty_shares(const PlanData& plan) {
  const std::uint64_t shares = plan.options.shares.total;
  if (shares == 1) return;
  const auto leaves = steps_of(*plan.dataset.node(), plan.options.tail, plan.drawn_seed).leaves;
  const auto groups = [&](const Node& leaf) { return *leaf.groups(plan.options.tail); };
  if (plan.program.stream)
    for (const Node* leaf : leaves)
      if (leaf->groups(plan.options.tail)) refuse_stream({groups(*leaf), shares});
  if (plan.program.stream) return;
  for (const auto& [leaf, fewest] : plan.program.steps.leaves_below(shares))
    if (leaves[leaf]->groups(plan.options.tail))
      refuse(fmt::format("{} of {} shares have no sample in a step of {}", shares - fewest, shares,
                         fewest),
             {groups(*leaves[leaf]), shares}, known_remedies({groups(*leaves[leaf]), shares}));
}

}  // namespace penstock
