#pragma once
// How a run spent its time, as the verdict and the estimates need it.

#include <cstddef>

#include "penstock/report.h"
#include "trace/recording.h"

namespace penstock {

/// Derived from a recording; all times in seconds.
struct Load {
  explicit Load(const trace::Recording& recording);

  double wall = 0;
  double wait = 0;      // of the consumer
  double consumer = 0;  // what it did between steps
  double threads = 1;   // that worked on the run, at most
  double cores = 1;
  double busy = 0;  // threads that worked on the run while the consumer waited, on average
  double work = 0;
  // Parts of the work of ops, over all threads:
  double ops = 0;
  double lock = 0;
  double process = 0;
  double read = 0;
  double retry = 0;
  double blocked = 0;  // asleep, unexplained
  double cpu = 0;
  double interpreted = 0;  // CPU time of ops that hold the interpreter's lock
  double overhead = 0;     // of `work`, outside ops
  double rows = 0;
  double in_order = 0;  // of `work`: pulling a stream, by one thread at a time

  /// For anything but a CPU.
  [[nodiscard]] double waiting() const { return lock + process + read + retry + blocked; }
  /// Takes out the work of an op.
  void remove(const OpReport& op, bool holds_lock);
  /// How long the threads need for the rows of this run, by `threads` threads on `cores` cores.
  [[nodiscard]] double input_seconds(double with_threads) const;
  /// How long the whole run would take if the input needed `input` seconds.
  [[nodiscard]] double predicted_wall(double input) const;
};

/// The parts of what an op took. `delay` is the part of its time for which no CPU was free.
OpReport op_report(const trace::OpRecord& op, double delay);
/// The part of the time of threads for which they were ready to run but no CPU was free.
double delay_share(const trace::Recording& recording);

}  // namespace penstock
