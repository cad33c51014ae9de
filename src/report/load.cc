// tested in src/report/verdict_test.cc
#include "report/load.h"

#include <algorithm>

#include "report/words.h"
#include "trace/histogram.h"

namespace penstock {

double delay_share(const trace::Recording& recording) {
  const double work = std::max(recording.work, 1e-9);
  return std::clamp(recording.run_delay / work, 0.0, 1.0);
}

OpReport op_report(const trace::OpRecord& op, double delay) {
  constexpr double kSecond = 1e-9;
  OpReport made;
  made.name = plain_name(op.title);
  made.calls = op.calls;
  made.rows = op.rows;
  made.seconds = op.seconds;
  made.p50 = trace::percentile(op.durations, 0.5) * kSecond;
  made.p99 = trace::percentile(op.durations, 0.99) * kSecond;
  made.bytes = op.bytes;
  made.lock_seconds = std::min(op.lock, op.seconds);
  double rest = op.seconds - made.lock_seconds;
  made.process_seconds = std::min(op.process, rest);
  rest -= made.process_seconds;
  made.read_seconds = std::min(op.read, rest);
  rest -= made.read_seconds;
  made.retry_seconds = std::min(op.retry, rest);
  rest -= made.retry_seconds;
  // What was not on a CPU and is not explained otherwise. A thread that finds no free CPU is not
  // asleep.
  const double cpu = op.cpu ? *op.cpu * op.seconds : rest;
  made.blocked_seconds = std::clamp(rest - cpu - delay * op.seconds, 0.0, rest);
  made.cpu_seconds = rest - made.blocked_seconds;
  return made;
}

Load::Load(const trace::Recording& recording) {
  const trace::RunFacts& facts = recording.facts;
  wall = recording.wall;
  threads = std::max(1U, facts.threads);
  cores = std::max(1U, facts.cores);
  work = recording.work;
  rows = static_cast<double>(recording.rows);
  wait = std::min(wall, facts.threads == 0 ? work : recording.waits.seconds);
  consumer = wall - wait;
  busy = facts.threads == 0            ? 1
         : recording.waits.seconds > 0 ? recording.waits.busy / recording.waits.seconds
                                       : 0;
  const double delay = delay_share(recording);
  for (const trace::OpRecord& op : recording.ops) {
    const OpReport parts = op_report(op, delay);
    ops += parts.seconds;
    lock += parts.lock_seconds;
    process += parts.process_seconds;
    read += parts.read_seconds;
    retry += parts.retry_seconds;
    blocked += parts.blocked_seconds;
    cpu += parts.cpu_seconds;
    if (op.lock > 0) interpreted += op.cpu ? *op.cpu * op.seconds : parts.cpu_seconds;
  }
  overhead = std::max(0.0, work - ops);
  in_order = facts.stream ? recording.pulled : 0;
}

void Load::remove(const OpReport& op, bool holds_lock) {
  const auto take = [](double& from, double part) { from = std::max(0.0, from - part); };
  take(ops, op.seconds);
  take(lock, op.lock_seconds);
  take(process, op.process_seconds);
  take(read, op.read_seconds);
  take(retry, op.retry_seconds);
  take(blocked, op.blocked_seconds);
  take(cpu, op.cpu_seconds);
  if (holds_lock) take(interpreted, op.cpu_seconds);
}

double Load::input_seconds(double with_threads) const {
  // Threads share the cores while they compute; what they wait for overlaps.
  const double computing = (cpu + overhead) / std::min(with_threads, cores);
  return std::max(
      {computing, (cpu + overhead + waiting() - lock) / with_threads, interpreted, in_order});
}

double Load::predicted_wall(double input) const {
  // The model's error at the present setting is assumed to stay the same.
  const double now = std::max(consumer, input_seconds(threads));
  return now <= 0 ? wall : wall * std::max(consumer, input) / now;
}

}  // namespace penstock
