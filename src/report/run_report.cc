// tested in src/report/verdict_test.cc
#include "report/run_report.h"

#include <algorithm>
#include <utility>

#include "report/load.h"
#include "report/verdict.h"
#include "report/what_if.h"
#include "report/words.h"

namespace penstock {
namespace {

/// With `wait_share` above this the input is what limits the epoch: it delivered what it could.
constexpr double kInputLimits = 0.2;

std::vector<OpReport> op_reports(const trace::Recording& recording) {
  std::vector<OpReport> reports;
  const double delay = delay_share(recording);
  double all = 0;
  for (const trace::OpRecord& op : recording.ops) {
    reports.push_back(op_report(op, delay));
    all += reports.back().seconds;
  }
  for (OpReport& op : reports) op.share = all > 0 ? op.seconds / all : 0;
  return reports;
}

void add_rates(Report& report, const Load& load) {
  const auto rows = static_cast<double>(report.rows);
  const double input =
      load.wait > kInputLimits * load.wall ? load.wall : load.input_seconds(load.threads);
  if (input > 0) report.input_rows_per_second = rows / input;
  if (load.consumer > 0) report.consumer_rows_per_second = rows / load.consumer;
}

}  // namespace

Report report_of(std::shared_ptr<const trace::Recording> recording) {
  const trace::Recording& from = *recording;
  const Load load(from);
  Report report;
  report.epoch = from.facts.epoch;
  report.steps = from.steps;
  report.rows = from.rows;
  report.waits = from.waits.count;
  report.wait_seconds = load.wait;
  report.tasks = from.tasks;
  report.work_seconds = from.work;
  report.wall_seconds = from.wall;
  report.consumer_seconds = load.consumer;
  report.skipped = from.skipped;
  report.retried = from.reads.retried;
  report.cut = from.cut;
  report.ops = op_reports(from);
  add_rates(report, load);
  for (const trace::SlowCall& call : from.slowest)
    report.slowest.push_back(
        {plain_name(call.op), call.sample, call.file, call.rows, call.step, call.seconds});
  for (const trace::ReplicaRecord& replica : from.replicas)
    report.replicas.push_back({replica.name, replica.rows, replica.busy, replica.waited});
  report.retries = from.reads.retries;
  for (const trace::DecisionRecord& decision : from.decisions)
    report.decisions.push_back(decision.text);
  report.plan = from.plan;
  report.skipped_samples = from.skipped_samples;
  report.what_if = what_if(from, load);
  Verdict verdict = verdict_of(from, load, report);
  report.cause = verdict.cause;
  report.verdict = std::move(verdict.text);
  report.advice = std::move(verdict.advice);
  report.recording = std::move(recording);
  return report;
}

}  // namespace penstock
