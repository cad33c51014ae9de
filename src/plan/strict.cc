// The checks of tail=strict, and the remedies.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/tail.h"
#include "plan/plan_data.h"

namespace penstock {
namespace {

/// The batch sizes nearest to G, below and above, that divide N and are divisible by R.
std::vector<std::uint64_t> sizes_that_divide(const GroupsAndShares& given) {
  constexpr std::uint64_t kLookMax = 1 << 16;
  const auto& [groups, shares] = given;
  const auto fits = [&](std::uint64_t size) {
    return groups.count == kEndless || groups.count % size == 0;
  };
  std::vector<std::uint64_t> sizes;
  const std::uint64_t below = groups.batch / shares;
  for (std::uint64_t i = 0; i < std::min(below, kLookMax) && sizes.empty(); ++i)
    if (const std::uint64_t size = (below - i) * shares; fits(size)) sizes.push_back(size);
  for (std::uint64_t i = 1; i <= kLookMax; ++i) {
    const std::uint64_t size = (below + i) * shares;
    if (size > std::max(groups.count, groups.batch + shares)) break;
    if (!fits(size)) continue;
    sizes.push_back(size);
    break;
  }
  return sizes;
}

[[noreturn]] void refuse(const GroupsAndShares& given, const std::string& what) {
  const auto& [groups, shares] = given;
  std::vector<std::string> remedies;
  for (const std::uint64_t size : sizes_that_divide(given))
    remedies.push_back(fmt::format("batch({})", size));
  const bool endless = groups.count == kEndless;
  for (const Tail tail : {Tail::short_, Tail::even, Tail::pad, Tail::drop, Tail::wrap}) {
    // Dropping helps only if something remains; for endless data all policies are the same.
    if (tail == Tail::drop && Groups{groups.count, groups.batch, Tail::drop}.steps() == 0) continue;
    if (endless && changes_steps(tail)) continue;
    remedies.push_back(fmt::format("tail={}", tail_name(tail)));
  }
  throw ConfigError(
      fmt::format("batch({}, tail=strict): {} (N = {} samples, G = {}, R = {} shares)",
                  groups.batch, what, endless ? "endless" : fmt::format("{}", groups.count),
                  groups.batch, shares),
      {}, fmt::format("any of these works: {}", fmt::join(remedies, ", ")));
}

}  // namespace

void check_strict(const PlanData& plan) {
  const std::uint64_t shares = plan.options.shares.total;
  const Steps& steps = plan.program.steps;
  const auto short_leaf = steps.short_leaf(0, kEndless);
  const auto leaves = steps_of(*plan.dataset.node(), plan.options.tail, plan.drawn_seed).leaves;
  for (std::uint32_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const Node& node = *leaves[leaf];
    if (!node.groups(plan.options.tail)) {
      if (plan.options.tail.value_or(Tail::short_) != Tail::short_)
        throw ConfigError("a tail policy does not apply to the batches of a Sequence", {},
                          "unbatch() and batch(n, {.tail = ...}) them, or leave the policy short");
      continue;
    }
    const Groups groups = *node.groups(plan.options.tail);
    if (groups.tail != Tail::strict) continue;
    if (short_leaf == leaf)
      refuse({groups, shares},
             fmt::format("the last step has {} samples", groups.count % groups.batch));
    if (groups.batch % shares != 0)
      refuse({groups, shares},
             groups.batch < shares
                 ? fmt::format("{} left without samples",
                               shares - groups.batch == 1
                                   ? "1 share is"
                                   : fmt::format("{} shares are", shares - groups.batch))
                 : "the shares of a step differ in size");
  }
}

}  // namespace penstock
