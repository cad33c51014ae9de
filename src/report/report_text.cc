// Reports as text. tested in src/report/report_text_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "penstock/report.h"
#include "report/words.h"

namespace penstock {
namespace {

constexpr std::size_t kLinesMax = 8;  // of a list; the page has all

std::string ops_table(const Report& report) {
  std::size_t width = 4;
  for (const OpReport& op : report.ops) width = std::max(width, op.name.size());
  width = std::min<std::size_t>(width, 40);
  std::string text = fmt::format("\n\n{:<{}}  {:>9} {:>6} {:>9} {:>9} {:>12} {:>8}", "op", width,
                                 "time", "share", "p50", "p99", "samples", "bytes");
  for (const OpReport& op : report.ops)
    text += fmt::format("\n{:<{}}  {:>9} {:>6} {:>9} {:>9} {:>12} {:>8}", op.name, width,
                        seconds_text(op.seconds), percent_text(op.share), seconds_text(op.p50),
                        seconds_text(op.p99), number_text(op.rows),
                        op.bytes == 0 ? "" : bytes_text(static_cast<double>(op.bytes)));
  return text;
}

template <typename List, typename Line>
std::string lines(const char* title, const List& list, Line line) {
  if (list.empty()) return {};
  std::string text = fmt::format("\n\n{}", title);
  for (std::size_t i = 0; i < std::min(list.size(), kLinesMax); ++i) text += "\n  " + line(list[i]);
  if (list.size() > kLinesMax) text += fmt::format("\n  and {} more", list.size() - kLinesMax);
  return text;
}

std::string slow_text(const SlowSample& slow) {
  return fmt::format("{} in {}: sample {}{}{}, step {}", seconds_text(slow.seconds), slow.op,
                     slow.sample,
                     slow.rows > 1 ? fmt::format(" and {} after it", slow.rows - 1) : "",
                     slow.file.empty() ? "" : fmt::format(" ({})", slow.file), slow.step);
}

std::string rates_text(const Report& report) {
  if (report.input_rows_per_second <= 0) return {};
  std::string text =
      fmt::format("\ninput: up to {} samples/s", rate_text(report.input_rows_per_second));
  if (report.consumer_rows_per_second > 0)
    text +=
        fmt::format("; training: up to {} samples/s", rate_text(report.consumer_rows_per_second));
  return text;
}

/// "12 % more", "the same"
std::string change_text(double before, double after) {
  if (before <= 0) return after <= 0 ? "the same" : "new";
  const double ratio = after / before;
  if (std::abs(ratio - 1) < 0.02) return "the same";
  if (ratio >= 2) return fmt::format("{:.1f} times as much", ratio);
  return fmt::format("{} {}", percent_text(std::abs(ratio - 1)), ratio > 1 ? "more" : "less");
}

}  // namespace

std::string Report::str() const {
  std::string text = fmt::format("epoch {}: {} step{}, {} sample{} in {}; waited {} ({})", epoch,
                                 number_text(steps), steps == 1 ? "" : "s", number_text(rows),
                                 rows == 1 ? "" : "s", seconds_text(wall_seconds),
                                 seconds_text(wait_seconds), percent_text(wait_share()));
  text += "\n" + verdict;
  if (!advice.empty()) text += "\n" + advice;
  if (!cut.empty()) text += "\nThe recording is cut: " + cut;
  text += rates_text(*this);
  if (skipped > 0 || retried > 0)
    text += fmt::format("\n{} skipped, {} retried", counted_text(skipped, "sample"), retried);
  if (!ops.empty()) text += ops_table(*this);
  text += lines("replicas", replicas, [](const ReplicaReport& replica) {
    return fmt::format("{}: {} samples, computed {}, waited for others {}", replica.name,
                       number_text(replica.rows), seconds_text(replica.busy_seconds),
                       seconds_text(replica.wait_seconds));
  });
  text += lines("what would help", what_if, [](const WhatIf& each) { return each.text; });
  text += lines("slowest", slowest, slow_text);
  text += lines("retries", retries, [](const std::string& line) { return line; });
  text += lines("decisions", decisions, [](const std::string& line) { return line; });
  return text;
}

std::string compare_reports(const Report& before, const Report& after) {
  const auto rate = [](const Report& report) {
    return report.wall_seconds > 0 ? static_cast<double>(report.rows) / report.wall_seconds : 0;
  };
  std::string text = fmt::format(
      "samples/s: {} before, {} after ({})\nwaiting for input: {} before, {} after\nbefore: {}\n"
      "after:  {}",
      rate_text(rate(before)), rate_text(rate(after)), change_text(rate(before), rate(after)),
      percent_text(before.wait_share()), percent_text(after.wait_share()), before.verdict,
      after.verdict);
  const auto per_row = [](const OpReport& op) {
    return op.rows > 0 ? op.seconds / static_cast<double>(op.rows) : 0;
  };
  for (const OpReport& op : after.ops) {
    const auto earlier = std::ranges::find(before.ops, op.name, &OpReport::name);
    if (earlier == before.ops.end()) {
      text += fmt::format("\n{}: new, {} a sample", op.name, seconds_text(per_row(op)));
      continue;
    }
    const std::string change = change_text(per_row(*earlier), per_row(op));
    if (change != "the same")
      text += fmt::format("\n{}: {} a sample before, {} after ({})", op.name,
                          seconds_text(per_row(*earlier)), seconds_text(per_row(op)), change);
  }
  for (const OpReport& op : before.ops)
    if (std::ranges::find(after.ops, op.name, &OpReport::name) == after.ops.end())
      text += fmt::format("\n{}: no longer there", op.name);
  return text;
}

}  // namespace penstock
