// The description of a plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/thread.h"
#include "order/cut.h"
#include "plan/epochs.h"
#include "plan/plan_data.h"

namespace penstock {
namespace {

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1ULL << 30) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30);
  if (bytes >= 1ULL << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20);
  if (bytes >= 1ULL << 10) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 0x1p10);
  return fmt::format("{} B", bytes);
}

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Rows of each share of a padded step; for a stream, whose steps are unknown, of any step.
std::uint64_t slots_of(const Plan& plan, std::uint64_t step) {
  const std::uint64_t shares = plan.shares().total;
  if (!plan.data()->program.stream)
    return cut_of(plan.data()->geometry.step(0, step), shares).slots();
  return plan.tail_cost().pads ? Cut{0, shares, plan.batch_samples()}.slots() : 0;
}

/// "1 step", "3 steps", "endless steps"
std::string sized(const Cardinality& size, const char* what) {
  return size.is_counted() ? counted(size.count(), what) : fmt::format("{} {}s", size.text(), what);
}

void explain_cut(const Plan& plan, std::string& text) {
  if (has_sequence(plan.data()->program)) {
    text += fmt::format(
        "  each batch of the Sequence, whatever its size, is cut over {}\n",
        plan.shares().total == 1
            ? "1 share"
            : fmt::format("{} shares whose sizes differ by at most one", plan.shares().total));
    if (plan.shares().count < plan.shares().total)
      text += "  every process requests every batch and keeps its own shares\n";
    return;
  }
  const auto line = [&](const char* which, std::uint64_t step) {
    const auto sizes = plan.cut(step);
    const std::uint64_t slots = slots_of(plan, step);
    constexpr std::size_t kShownMax = 16;
    std::uint64_t rows = 0;
    for (const std::uint64_t size : sizes) rows += size;
    const std::size_t shown = std::min(sizes.size(), kShownMax);
    text += fmt::format(
        "  {} {:>6} {} over {}: {}{}{}\n", which, rows, rows == 1 ? "sample" : "samples",
        counted(sizes.size(), "share"),
        fmt::join(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        shown < sizes.size() ? fmt::format(", ... {}", sizes.back()) : "",
        slots > 0 ? fmt::format(", in {} rows each", slots) : "");
  };
  if (plan.steps().is_unknown()) return line("full step ", 0);
  if (plan.steps().is_counted() && plan.steps().count() == 0) return;
  line("first step", 0);
  if (plan.steps().is_counted() && plan.steps().count() > 1)
    line("last step ", plan.steps().count() - 1);
}

/// Batches below an unbatch also drop and repeat samples, but have no empty slots.
void add_cost(const Node& node, std::optional<Tail> tail, std::uint64_t shares, TailCost& cost) {
  if (const auto found = node.groups(tail)) {
    const Groups& groups = *found;
    const bool counted = groups.count != kEndless;
    if (counted && groups.delivered() < groups.count)
      cost.dropped += groups.count - groups.delivered();
    if (counted && groups.delivered() > groups.count)
      cost.repeated += groups.delivered() - groups.count;
    if (groups.tail == Tail::pad && shares > 0) {
      cost.pads = true;
      const std::uint64_t slots = Cut{0, shares, groups.batch}.slots() * shares;
      if (counted) cost.rows += groups.steps() * slots;
      if (counted) cost.padded += groups.steps() * slots - groups.count;
    }
  }
  const bool below = node.facts().unbatches;
  for (const NodePtr& input : node.inputs)
    add_cost(*input, below ? std::nullopt : tail, below ? 0 : shares, cost);
}

void explain_tail(const Plan& plan, std::string& text) {
  const TailCost cost = plan.tail_cost();
  if (cost.dropped > 0)
    text += fmt::format("  tail drop: {} samples are dropped each time through\n", cost.dropped);
  if (cost.repeated > 0)
    text += fmt::format("  tail wrap: {} samples are repeated each time through\n", cost.repeated);
  if (cost.pads)
    text += fmt::format(
        "  tail pad: {} each time through; samples weigh shares * rows / step's samples, empty "
        "rows "
        "0, loss_scale is 1\n",
        cost.rows > 0 ? fmt::format("{} of {} rows are empty", cost.padded, cost.rows)
                      : "empty rows fill up the last step");
  if (!cost.pads)
    text +=
        "  every sample weighs the same: weight 1, loss_scale = shares * rows / step's samples\n";
}

/// Shares are smallest in the last step. With shuffled or concatenated steps it may be an earlier
/// one, which this does not search for.
void explain_empty(const Plan& plan, std::string& text) {
  if (!plan.steps().is_counted() || plan.steps().count() == 0) return;
  const auto sizes = plan.cut(plan.steps().count() - 1);
  if (const auto empty = std::ranges::count(sizes, 0U); empty > 0)
    text += fmt::format(
        "  {} of {} shares have no sample in the last step: they get batches of 0 {}rows\n", empty,
        sizes.size(), plan.tail_cost().pads ? "valid " : "");
}

void explain_means(const Plan& plan, std::string& text) {
  const Hints hints = hints_of(*plan.dataset().node());
  if (const auto bytes = plan.batch_bytes()) {
    text += fmt::format("  one batch: {}, {} here\n", size_text(*bytes),
                        counted(plan.shares().count, "share"));
  } else {
    text += "  one batch: unknown until the first sample is computed (declare spec= to know)\n";
  }
  text += fmt::format("  look-ahead: {}\n",
                      hints.lookahead_bytes
                          ? fmt::format("up to {} of batches", size_text(*hints.lookahead_bytes))
                          : "up to a quarter of the free memory, over all loaders");
  const unsigned cores = usable_cores();
  const unsigned threads = std::min(hints.threads.value_or(cores), cores);
  text += threads == 0 ? "  threads: none, the caller's thread computes\n"
                       : fmt::format(
                             "  threads: {} of the {} that all loaders of a process share "
                             "on this machine\n",
                             threads, cores);
}

}  // namespace

TailCost Plan::tail_cost() const {
  TailCost cost;
  add_cost(*data_->dataset.node(), data_->options.tail, data_->options.shares.total, cost);
  return cost;
}

std::string Plan::explain() const {
  const PlanData& data = *data_;
  std::string text = fmt::format("plan\n{}", data.dataset.describe());
  text +=
      fmt::format("a pass: {}, {}, global batch {}\n", sized(steps(), "step"),
                  samples() ? sized(*samples(), "sample") : "uncounted samples", batch_samples());
  if (data.options.epochs) text += fmt::format("{}\n", epochs_text(data));
  if (!data.options.world.empty()) text += fmt::format("world: {}\n", data.options.world);
  if (data.program.stream)
    text += fmt::format(
        "  a stream: pulled in one order by one sequencer{}; its end is known one step ahead\n",
        shares().count < shares().total
            ? ", in every process alike: each pulls all of it and computes its own shares"
            : "");
  explain_cut(*this, text);
  if (shares().count < shares().total)
    text += fmt::format("  served here: shares {} to {} of {}\n", shares().first,
                        shares().first + shares().count - 1, shares().total);
  explain_empty(*this, text);
  explain_tail(*this, text);
  explain_means(*this, text);
  if (wants_drawn_seed(*data.dataset.node()))
    text += fmt::format("  random seed: {}\n", data.drawn_seed);
  const bool free =
      data.program.stream ? batch_size_is_free(*data.dataset.node()) : data.geometry.elastic();
  if (!free)
    text += "  steps are counted by the dataset: a state loads only at the same batch size\n";
  for (const std::string& warning : data.program.warnings)
    text += fmt::format("  warning: {}\n", warning);
  for (const std::string& note : data.program.notes) text += fmt::format("  note: {}\n", note);
  const Digests marks = digests();
  text += fmt::format("  digests: order {}, values {}\n", marks.order, marks.values);
  return text;
}

}  // namespace penstock
