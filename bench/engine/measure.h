#pragma once
// Epochs of a dataset, mostly one, timed from the first batch to the last, and programs that time
// one of several.

#include <fmt/core.h>
#include <penstock/penstock.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <string>

namespace bench {

namespace ps = penstock;
using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

struct Measured {
  std::uint64_t items = 0;
  double seconds = 0;
  double first_batch = 0;
  double check = 0;
  double cpu_seconds = 0;  // of all threads, in the same time
};

inline double cpu_now() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Reads one value of every 4 KB, as the peers' harness does, so that no page stays untouched.
inline double touch(const ps::Batch& batch) {
  double sum = 0;
  for (const ps::FieldSpec& field : batch.spec().fields) {
    const auto bytes = batch[field.path].raw();
    for (std::size_t i = 0; i < bytes.size(); i += 4096) sum += static_cast<double>(bytes[i]);
  }
  return sum;
}

inline Measured measure(const ps::Dataset& dataset, const ps::LoaderOptions& options,
                        int epochs = 1) {
  const auto start = Clock::now();
  ps::Loader loader(dataset, options);
  Measured result;
  const auto first_step = loader.next_step();
  for (const ps::Batch& batch : *first_step) result.check += touch(batch);
  const auto first = Clock::now();
  const double cpu = cpu_now();
  result.first_batch = Seconds(first - start).count();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    while (const auto batches = loader.next_step()) {
      for (const ps::Batch& batch : *batches) {
        result.check += touch(batch);
        result.items += batch.rows();
      }
    }
  }
  result.seconds = Seconds(Clock::now() - first).count();
  result.cpu_seconds = cpu_now() - cpu;
  return result;
}
inline Measured measure(const ps::Dataset& dataset, unsigned threads, int epochs = 1) {
  return measure(dataset, ps::LoaderOptions{.threads = threads}, epochs);
}

/// Work that is counted and not timed: a thread that lost its core has not "worked" meanwhile.
inline void spin(std::uint64_t turns) {
  std::uint64_t x = 88172645463325252ULL;
  for (std::uint64_t i = 0; i < turns; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  volatile std::uint64_t sink = x;
  (void)sink;
}

/// Turns that take 100 us here: the fastest of many tries, since whatever else runs only slows.
inline std::uint64_t turns_per_100_us() {
  constexpr std::uint64_t kTurns = 100'000;
  double best = 1;
  for (int i = 0; i < 200; ++i) {
    const auto start = Clock::now();
    spin(kTurns);
    best = std::min(best, Seconds(Clock::now() - start).count());
  }
  return static_cast<std::uint64_t>(kTurns * 100e-6 / best);
}

/// From PENSTOCK_SPIN_TURNS, so that two programs of one comparison do the same work.
inline std::uint64_t spin_turns() {
  const char* turns = std::getenv("PENSTOCK_SPIN_TURNS");
  return turns != nullptr ? std::strtoull(turns, nullptr, 10) : turns_per_100_us();
}

using Workloads = std::map<std::string, std::function<Measured(unsigned threads)>>;

/// `PROGRAM WORKLOAD THREADS`: runs one and prints what was measured, as JSON.
inline int run_one_of(const Workloads& workloads, int argc, char** argv) {
  if (argc != 3 || !workloads.contains(argv[1])) {
    fmt::print(stderr, "usage: {} WORKLOAD THREADS; workloads:", argv[0]);
    for (const auto& [name, run] : workloads) fmt::print(stderr, " {}", name);
    fmt::print(stderr, "\n");
    return 2;
  }
  const Measured result = workloads.at(argv[1])(static_cast<unsigned>(std::atoi(argv[2])));
  fmt::print(
      "{{\"items\": {}, \"seconds\": {:.6f}, \"first_batch_s\": {:.6f}, \"check\": {}, "
      "\"cpu_seconds\": {:.6f}}}\n",
      result.items, result.seconds, result.first_batch, result.check, result.cpu_seconds);
  return 0;
}

}  // namespace bench
