#pragma once
// What a loader did in an epoch, why it was as fast as it was, and what would make it faster.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

namespace trace {
struct Recording;
}

/// What limited an epoch.
enum class Cause : std::uint8_t {
  nothing_ran,
  healthy,             // training hardly waited
  start_up,            // waiting for the first step was most of the wait
  compute,             // an op keeps all threads busy
  few_threads,         // an op keeps all threads busy, and there are fewer of them than cores
  interpreter_lock,    // functions wait for Python's lock
  function_waits,      // a function sleeps, or waits for something outside this process
  worker_processes,    // a function in worker processes
  reading,             // files, or bytes that are read ahead
  retries,             // reads that failed and were tried again
  in_order,            // a stream, which one thread pulls element by element
  whole_batches,       // a function of whole batches, one call for each step
  stragglers,          // a few samples that take many times as long as the others
  memory,              // the bytes that batches may use
  small_steps,         // the fixed cost of each step
  other_loaders,       // other loaders of this process use the threads
  other_programs,      // this process's threads are ready to run, but no CPU is free
  slow_replica,        // the others wait for one replica
  cache_after_random,  // every epoch repeats the random numbers of the first one
};
/// "slow_replica"
const char* cause_name(Cause cause);

/// What one op took, over all threads. Times are in seconds.
struct OpReport {
  std::string name;
  std::uint64_t calls = 0;
  std::uint64_t rows = 0;
  double seconds = 0;
  double share = 0;  // of the time of all ops
  double p50 = 0;    // of a row
  double p99 = 0;
  std::uint64_t bytes = 0;  // of its results, without text and ragged fields
  // Parts of `seconds`:
  double cpu_seconds = 0;  // computing; all that is not known to be something else
  double lock_seconds = 0;
  double process_seconds = 0;
  double read_seconds = 0;
  double retry_seconds = 0;
  double blocked_seconds = 0;  // asleep, for a reason that is not known
};

/// A call that took unusually long.
struct SlowSample {
  std::string op;
  std::string sample;      // "17 of source 0": the first of the call
  std::string file;        // that contains it, if any
  std::uint64_t rows = 1;  // of the call
  std::uint64_t step = 0;
  double seconds = 0;  // of the call
};

struct ReplicaReport {
  std::string name;
  std::uint64_t rows = 0;
  double busy_seconds = 0;
  double wait_seconds = 0;  // for the other replicas
};

/// What a change would save.
struct WhatIf {
  std::string change;  // "4 threads instead of 2"
  double gain = 0;     // the part of the epoch's time that it saves, 0 to 1
  std::string text;    // a sentence
};

/// Counters and times of one epoch. The numbers are of the whole epoch; single events, which pages
/// and traces show, only the latest of each thread, unless a file recorded all (`report_dir`).
struct Report {
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;  // delivered
  std::uint64_t rows = 0;   // delivered
  std::uint64_t waits = 0;  // how often the consumer waited for a step
  double wait_seconds = 0;  // and how long in all; with threads=0, how long it computed
  std::uint64_t tasks = 0;  // pieces of work that threads did
  double work_seconds = 0;  // and how long they took, over all threads

  double wall_seconds = 0;              // from the first request to the last delivery
  double consumer_seconds = 0;          // of it, between a delivery and the next request
  double input_rows_per_second = 0;     // that could be delivered
  double consumer_rows_per_second = 0;  // that the consumer could take
  std::uint64_t skipped = 0;            // samples
  std::uint64_t retried = 0;            // reads and calls

  Cause cause = Cause::nothing_ran;
  std::string verdict = {};  // one or two sentences
  std::string advice = {};   // what to do; may be empty
  std::string cut = {};      // why the recording is incomplete; empty if it is complete

  std::vector<OpReport> ops = {};
  std::vector<SlowSample> slowest = {};
  std::vector<ReplicaReport> replicas = {};
  std::vector<WhatIf> what_if = {};  // the largest gain first
  std::vector<std::string> retries = {};
  /// How far ahead the epoch works, with how many threads, and why: a line for each change.
  std::vector<std::string> decisions = {};
  std::string plan = {};  // Plan::explain()
  std::vector<std::string> skipped_samples = {};

  /// The part of the time for which training waited, 0 to 1.
  [[nodiscard]] double wait_share() const {
    return wall_seconds > 0 ? wait_seconds / wall_seconds : 0;
  }
  /// For people: the verdict, the advice, then numbers.
  [[nodiscard]] std::string str() const;
  /// Writes a page (.html) or a trace (.json) for Chrome, Perfetto and `penstock report`. Throws
  /// ConfigError for another extension and ResourceError if the file cannot be written.
  void save(const std::string& path) const;

  std::shared_ptr<const trace::Recording> recording = {};  // what it was computed from
};

/// What changed between two reports, in words.
std::string compare_reports(const Report& before, const Report& after);
/// Reads a trace that `Report::save` or `report_dir` wrote, also one of a run that was killed.
/// Throws ConfigError if it is none.
Report read_report(const std::string& path);

}  // namespace penstock
