// One measurement of streams, of the skip policy or of replicas, in one process: stream_bench
// WORKLOAD THREADS. Prints one JSON line; bench/engine/run.py compares them.
#include <stdexcept>

#include "bench/engine/measure.h"

namespace {

namespace ps = penstock;
using bench::Clock;
using bench::measure;
using bench::Measured;
using bench::Seconds;
using bench::spin;

struct Point {
  float x = 0;
  std::int32_t label = 0;
  static constexpr auto fields() {
    return std::tuple(ps::field("x", &Point::x), ps::field("label", &Point::label));
  }
};

constexpr std::int64_t kElements = 8'000'000;

/// Counts what is pulled, not what passes: elements per second of the generator.
Measured stream(unsigned threads) {
  const auto points = ps::Dataset::from_generator([] {
    return [i = std::int64_t{0}]() mutable -> std::optional<Point> {
      if (i == kElements) return std::nullopt;
      const auto n = static_cast<std::int32_t>(i++);
      return Point{static_cast<float>(n % 1000), n};
    };
  });
  Measured result = measure(points.filter([](std::int32_t, float x) { return x < 900; })
                                .shuffle({.seed = 1, .window = 10'000})
                                .batch(256),
                            threads);
  result.items = kElements;
  return result;
}

/// Sixteen streams in turns, or one of the same length, of numbers in memory.
Measured interleaved(unsigned threads, std::int64_t streams) {
  const auto spec = ps::ElementSpec::single(ps::Dtype::i64);
  return measure(ps::Dataset::range(streams)
                     .interleave(
                         [streams](std::int64_t i) {
                           return ps::Dataset::range(i * 1'000'000,
                                                     i * 1'000'000 + kElements / streams);
                         },
                         {.cycle = static_cast<std::uint64_t>(streams), .block = 1, .spec = spec})
                     .batch(256),
                 threads);
}

/// 20 us of work for each sample; one in ten fails after it.
Measured tenth_bad(unsigned threads, bool bad) {
  constexpr std::int64_t kSamples = 100'000;
  const auto work = ps::Dataset::range(kSamples)
                        .map([bad, turns = bench::spin_turns() / 5](std::int64_t x) {
                          spin(turns);
                          if (bad && x % 10 == 3) throw std::runtime_error("bad sample");
                          return x;
                        })
                        .batch(256);
  ps::LoaderOptions options;
  options.threads = threads;
  options.on_error = ps::OnError::skip;
  options.skip_limit = UINT64_MAX;
  Measured result = measure(work, options);
  result.items = kSamples;
  return result;
}

/// Rows of 128 floats over one share, or over eight in one process.
Measured shares(unsigned threads, std::uint32_t count) {
  constexpr std::int64_t kRows = 1'000'000;
  std::vector<float> values(kRows * 128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977);
  const auto tensor = ps::Tensor::of(std::span<const float>(values), {kRows, 128});
  values = {};
  ps::LoaderOptions options;
  options.threads = threads;
  options.shares = {count, 0, count};
  return measure(ps::Dataset::from_tensor_slices(tensor).shuffle({.seed = 1}).batch(1024), options);
}

/// Going on after 10^6 small elements of a generator without a cursor.
Measured replay(unsigned threads) {
  const auto numbers =
      ps::Dataset::from_generator([] {
        return [i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> { return i++; };
      }).batch(1000);
  ps::Loader before(numbers, {.threads = threads});
  constexpr std::uint64_t kSteps = 1000;
  for (std::uint64_t step = 0; step < kSteps; ++step) before.next();
  const ps::State state = before.state();
  const auto start = Clock::now();
  ps::Loader after(numbers, {.threads = threads});
  after.restore(state);
  const auto batch = after.next();
  return {kSteps * 1000, Seconds(Clock::now() - start).count(), 0,
          static_cast<double>(batch->values<std::int64_t>()[0])};
}

/// Planning and cutting steps over 8 replicas; items are samples.
Measured cutting(unsigned) {
  const ps::Plan plan(ps::Dataset::range(1'000'000'000).shuffle().batch(1000), {{8, 0, 8}});
  Measured result;
  const auto start = Clock::now();
  for (std::uint64_t step = 0; step < 100'000; ++step)
    for (const std::uint64_t rows : plan.cut(step * 10)) result.items += rows;
  result.seconds = Seconds(Clock::now() - start).count();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Workloads workloads{
      {"stream", stream},
      {"interleave16", [](unsigned threads) { return interleaved(threads, 16); }},
      {"interleave1", [](unsigned threads) { return interleaved(threads, 1); }},
      {"skip", [](unsigned threads) { return tenth_bad(threads, true); }},
      {"clean", [](unsigned threads) { return tenth_bad(threads, false); }},
      {"shares8", [](unsigned threads) { return shares(threads, 8); }},
      {"shares1", [](unsigned threads) { return shares(threads, 1); }},
      {"replay", replay},
      {"cutting", cutting}};
  return bench::run_one_of(workloads, argc, argv);
}
