// One measurement of the engine in one process: engine_bench WORKLOAD THREADS. Prints one JSON line
// with the steady rate (first batch to last of one epoch). bench/engine/run.py compares them.
#include <chrono>
#include <vector>

#include "base/thread.h"
#include "bench/engine/measure.h"
#include "order/permutation.h"

namespace {

namespace ps = penstock;
using bench::Clock;
using bench::measure;
using bench::Measured;
using bench::Seconds;
using bench::spin;

Measured tiny(unsigned threads) {
  return measure(ps::Dataset::range(5'000'000)
                     .map([](std::int64_t x) { return x * 2 + 1; })
                     .shuffle({.seed = 1})
                     .batch(256),
                 threads);
}

Measured tiny_in_large_batches(unsigned threads) {
  return measure(ps::Dataset::range(400'000'000)
                     .map([](std::int64_t x) { return x * 2 + 1; })
                     .shuffle({.seed = 1})
                     .batch(4096),
                 threads);
}

/// As little work as a step can hold: what is left is the hand-over. Items are steps.
Measured steps(unsigned threads) {
  Measured result = measure(ps::Dataset::range(3'200'000).batch(16), threads);
  result.items /= 16;
  return result;
}

/// The same numbers as parts of a whole that is shuffled: neighbors come from different parts.
Measured tiny_repeated(unsigned threads) {
  return measure(ps::Dataset::range(250'000)
                     .map([](std::int64_t x) { return x * 2 + 1; })
                     .repeat(20)
                     .shuffle({.seed = 1})
                     .batch(256),
                 threads);
}

Measured tiny_concatenated(unsigned threads) {
  const auto twice = [](std::int64_t x) { return x * 2 + 1; };
  return measure(ps::Dataset::range(2'500'000)
                     .map(twice)
                     .concatenate(ps::Dataset::range(2'500'000).map(twice))
                     .shuffle({.seed = 1})
                     .batch(256),
                 threads);
}

ps::Dataset million_rows() {
  constexpr std::int64_t kRows = 1'000'000;
  std::vector<float> values(kRows * 128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977);
  const auto tensor = ps::Tensor::of(std::span<const float>(values), {kRows, 128});
  return ps::Dataset::from_tensor_slices(tensor);
}

Measured rows(unsigned threads, int epochs) {
  return measure(million_rows().shuffle({.seed = 1}).batch(1024), threads, epochs);
}

Measured rows_repeated(unsigned threads) {
  return measure(million_rows().repeat(20).shuffle({.seed = 1}).batch(1024), threads);
}

constexpr std::uint64_t kSpins = 40'000;

Measured overhead(unsigned threads) {
  return measure(ps::Dataset::range(kSpins)
                     .map([turns = bench::spin_turns()](std::int64_t x) {
                       spin(turns);
                       return x;
                     })
                     .batch(64),
                 threads);
}

/// The same spins on bare threads.
Measured bare_spins(unsigned threads) {
  const std::uint64_t turns = bench::spin_turns();
  const auto start = Clock::now();
  {
    std::vector<ps::Thread> bare;
    for (unsigned t = 0; t < threads; ++t)
      bare.emplace_back("spin", [threads, turns] {
        for (std::uint64_t i = 0; i < kSpins / threads; ++i) spin(turns);
      });
  }
  return {kSpins, Seconds(Clock::now() - start).count(), 0, 0};
}

/// Not a rate: how many turns take 100 us, as `items`.
Measured turns(unsigned) {
  return {bench::turns_per_100_us(), 1, 0, 0};
}

Measured permutation(unsigned) {
  const ps::Permutation order(5'000'000, {1, 0, 0});
  std::vector<std::uint64_t> block(256);
  Measured result;
  const auto start = Clock::now();
  for (std::uint64_t first = 0; first + block.size() <= order.size(); first += block.size()) {
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = first + i;
    order.apply(block);
    result.check += static_cast<double>(block[0]);
    result.items += block.size();
  }
  result.seconds = Seconds(Clock::now() - start).count();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Workloads workloads{{"tiny", tiny},
                                   {"tiny4096", tiny_in_large_batches},
                                   {"tiny-repeated", tiny_repeated},
                                   {"tiny-concatenated", tiny_concatenated},
                                   {"steps", steps},
                                   {"rows", [](unsigned threads) { return rows(threads, 1); }},
                                   {"rows20", [](unsigned threads) { return rows(threads, 20); }},
                                   {"rows-repeated", rows_repeated},
                                   {"overhead", overhead},
                                   {"bare", bare_spins},
                                   {"turns", turns},
                                   {"permutation", permutation}};
  return bench::run_one_of(workloads, argc, argv);
}
