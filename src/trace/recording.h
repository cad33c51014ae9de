#pragma once
// What was recorded of one run, as plain values: copied from a run, also while it goes on, or read
// from a file. Reports are computed from this alone. Times are in seconds unless named otherwise.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/time_series.h"
#include "trace/trace.h"

namespace penstock::trace {

/// An op or cache of the dataset; in a list, in the order in which data passes them.
struct PlannedOp {
  std::string title;         // "map(decode)#1"
  bool random = false;       // draws random numbers
  bool cache = false;        // keeps what passes: in later epochs nothing before it runs
  std::string repeats = {};  // of a cache: the random op before it, if there is one
  bool whole = false;        // a function of whole batches
  unsigned processes = 0;    // worker processes that run it
};

/// What is known before the run starts.
struct RunFacts {
  std::string dataset = {};  // its name
  std::uint64_t epoch = 0;
  std::uint64_t first_step = 0;
  std::optional<std::uint64_t> end_step = {};  // unknown for a stream
  std::uint64_t step_rows = 0;                 // in the shares of this process, at most
  std::uint32_t shares = 1;
  std::uint32_t first_share = 0;
  std::uint32_t shares_total = 1;
  bool stream = false;
  unsigned threads = 0;         // 0: the consumer computes
  unsigned pool_threads = 0;    // of the process
  unsigned cores = 1;           // that the process may use
  std::uint64_t bytes_max = 0;  // for batches prepared in advance
  std::vector<PlannedOp> ops = {};
};

/// What one op took.
struct OpRecord {
  std::string title;
  std::uint64_t calls = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // of its results, without text and ragged fields
  double seconds = 0;       // in all threads, without the ops before it
  // Parts of `seconds`:
  double lock = 0;     // waiting for the interpreter's lock
  double process = 0;  // waiting for worker processes
  double read = 0;     // reading, or waiting for bytes that are read ahead
  double retry = 0;    // pauses before retries
  std::uint64_t read_bytes = 0;
  std::optional<double> cpu = {};             // the part of its time on a CPU, 0 to 1, if measured
  std::vector<std::uint64_t> durations = {};  // rows by duration: see Histogram
};

/// A call of an op that took unusually long.
struct SlowCall {
  std::string op;
  std::string sample;  // "17 of source 0"
  std::string file;
  std::uint64_t rows = 1;  // of the call; `sample` is the first
  std::uint64_t step = 0;
  double seconds = 0;  // of the whole call
};

/// How the consumer waited.
struct WaitRecord {
  std::uint64_t count = 0;
  double seconds = 0;
  double first = 0;  // before the first step
  double longest = 0;
  std::uint64_t longest_step = 0;
  // While it waited:
  double busy = 0;       // seconds of threads that worked on this run
  double one_busy = 0;   // seconds for which only one did
  double pulling = 0;    // seconds for which a thread pulled a stream, or computed the first sample
  double at_limit = 0;   // seconds for which no further step could be begun: too many in flight
  double at_bytes = 0;   // of these, because of the byte budget
  double none_busy = 0;  // seconds for which no thread worked on this run
};

struct ReadRecord {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;    // in all threads
  unsigned threads = 0;  // that read ahead
  double latency = 0;    // beyond copying the bytes, smoothed
  std::uint64_t retried = 0;
  std::vector<std::string> retries = {};  // the first ones, in words
};

struct ReplicaRecord {
  std::string name;
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  double busy = 0;    // in its function
  double waited = 0;  // for the other replicas of the step
};

struct DecisionRecord {
  double at = 0;  // seconds since the start
  std::string text;
};

struct Recording {
  RunFacts facts;
  std::string cut = {};  // why it is incomplete; empty if it is whole
  bool ended = false;    // the epoch reached its end
  double wall = 0;       // from the first request to the last delivery, or to now
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  WaitRecord waits;
  std::uint64_t tasks = 0;
  double work = 0;       // of all threads on this run
  double others = 0;     // of the pool's threads on other runs of the process, meanwhile
  double run_delay = 0;  // of this run's threads: ready to run, but no CPU was free
  double pulled = 0;     // of `work`, pulling a stream
  std::vector<OpRecord> ops;
  ReadRecord reads;
  std::vector<SlowCall> slowest;
  std::vector<ReplicaRecord> replicas;
  std::vector<DecisionRecord> decisions;
  std::uint64_t step_bytes = 0;  // of the largest step
  std::uint64_t window = 0;      // steps in flight, at most, at the end
  std::uint64_t in_flight_max = 0;
  std::uint64_t bytes_used_max = 0;               // of the process's byte budget
  std::uint64_t bytes_limit = 0;                  // of the process
  std::uint64_t skipped = 0;                      // samples
  std::string plan = {};                          // in words
  std::vector<std::string> skipped_samples = {};  // the first ones, in words
  TimeSeries::Copy series;
  std::vector<Event> events;  // times in nanoseconds since the start; the latest ones
  std::uint64_t events_missed = 0;
  std::vector<std::string> threads;    // names, by Event::thread
  std::vector<std::string> op_titles;  // by Event::op
};

}  // namespace penstock::trace
