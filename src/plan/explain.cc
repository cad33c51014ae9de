// The plan in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "order/cut.h"
#include "plan/plan_data.h"

namespace penstock {
namespace {

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1ULL << 30) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30);
  if (bytes >= 1ULL << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20);
  if (bytes >= 1ULL << 10) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 0x1p10);
  return fmt::format("{} B", bytes);
}

void explain_cut(const Plan& plan, std::string& text) {
  const auto line = [&](const char* which, std::uint64_t step) {
    const auto sizes = plan.cut(step);
    constexpr std::size_t kShownMax = 16;
    std::uint64_t rows = 0;
    for (const std::uint64_t size : sizes) rows += size;
    const std::size_t shown = std::min(sizes.size(), kShownMax);
    text += fmt::format(
        "  {} {:>6} samples over {} shares: {}{}\n", which, rows, sizes.size(),
        fmt::join(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        shown < sizes.size() ? fmt::format(", ... {}", sizes.back()) : "");
  };
  if (plan.steps().is_unknown()) return line("full step ", 0);
  if (plan.steps().is_counted() && plan.steps().count() == 0) return;
  line("first step", 0);
  if (plan.steps().is_counted() && plan.steps().count() > 1)
    line("last step ", plan.steps().count() - 1);
}

/// Samples that drops leave out each time through, those below an unbatch included.
std::uint64_t dropped(const Node& node, std::optional<Tail> tail) {
  std::uint64_t lost = 0;
  if (const auto* batch = node.as<BatchVerb>(); batch && node.input().size.is_counted()) {
    const Groups groups = groups_of(*batch, node.input().size, tail);
    lost = groups.count - groups.delivered();
  }
  if (node.as<UnbatchVerb>()) tail = std::nullopt;
  for (const NodePtr& input : node.inputs) lost += dropped(*input, tail);
  return lost;
}

}  // namespace

std::string Plan::explain() const {
  const PlanData& data = *data_;
  std::string text = fmt::format("plan\n{}", data.dataset.describe());
  text += fmt::format("a pass: {} steps, {} samples, global batch {}\n", steps().text(),
                      samples() ? samples()->text() : "uncounted", batch_samples());
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
  if (const std::uint64_t lost = dropped(*data.dataset.node(), data.options.tail); lost > 0)
    text += fmt::format("  tail drop: {} samples are left out each time through\n", lost);
  text += "  every sample weighs the same: weight 1, loss_scale = shares * rows / step's samples\n";
  if (const auto bytes = batch_bytes()) {
    text += fmt::format("  one batch: {}, {} shares here\n", size_text(*bytes), shares().count);
  } else {
    text += "  one batch: unknown until the first sample is computed (declare spec= to know)\n";
  }
  if (wants_drawn_seed(*data.dataset.node()))
    text += fmt::format("  random seed: {}\n", data.drawn_seed);
  const bool free =
      data.program.stream ? batch_size_is_free(*data.dataset.node()) : data.geometry.elastic();
  if (!free)
    text += "  steps are counted by the dataset: a state loads only at the same batch size\n";
  for (const std::string& note : data.program.notes) text += fmt::format("  note: {}\n", note);
  const Digests marks = digests();
  text += fmt::format("  digests: order {}, values {}\n", marks.order, marks.values);
  return text;
}

}  // namespace penstock
