// Limits in milliseconds and megabytes: prints each figure beside its limit and fails beyond it.
// Times are the best of several tries, which other programs on the machine disturb least; each
// limit is at most five times what was measured when it was set.
#include <fmt/core.h>
#include <penstock/penstock.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace {

namespace ps = penstock;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double status_field(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::strtod(line.c_str() + name.size() + 1, nullptr);
  return 0;
}
double rss_mb() {
  return status_field("VmRSS") / 1024;
}
double threads() {
  return status_field("Threads");
}
double descriptors() {
  double count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

class Limits {
 public:
  void check(const char* what, double value, double limit, const char* unit) {
    const bool held = value <= limit;
    failed_ += held ? 0 : 1;
    ++checked_;
    fmt::print("{:<58} {:>10.2f} {:<3} limit {:>8.2f}  {}\n", what, value, unit, limit,
               held ? "ok" : "BROKEN");
  }
  [[nodiscard]] int finish() const {
    fmt::print("{} passed, {} failed\n", checked_ - failed_, failed_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  int checked_ = 0;
  int failed_ = 0;
};

ps::Dataset numbers(std::int64_t count) {
  return ps::Dataset::range(count)
      .map([](std::int64_t x) { return x * 2 + 1; })
      .shuffle({.seed = 1})
      .batch(256);
}

/// The shortest of `tries` runs, in milliseconds.
template <typename Run>
double best_of(int tries, const Run& run) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < tries; ++i) {
    const auto began = Clock::now();
    run();
    best = std::min(best, since(began));
  }
  return best;
}

void start(Limits& limits) {
  const double best = best_of(21, [] {
    ps::Loader loader(numbers(5'000'000));
    loader.next();
  });
  limits.check("first batch of tiny elements, dataset to batch", best, 1.0, "ms");
}

void resume(Limits& limits) {
  constexpr std::int64_t kSamples = 1'000'000'000;
  ps::Loader at_start(numbers(kSamples));
  at_start.next();
  ps::State state = at_start.state();
  state.position = 900'000'000 / 256 * 256;
  state.step = state.position / 256;
  const std::string text = state.to_json();
  const double best = best_of(11, [&] {
    ps::Loader resumed(numbers(kSamples));
    resumed.restore(ps::State::parse(text));
    if (resumed.next()->step() != state.step) std::abort();
  });
  limits.check("resume at position 9e8 of 1e9, to the first batch", best, 1.5, "ms");
  limits.check("state", static_cast<double>(text.size()), 1024, "B");
}

/// A consumer that takes its time: memory grows by the budget and what is being delivered, as the
/// kernel counts it. Batches are 1 MB.
void look_ahead(Limits& limits) {
  constexpr std::uint64_t kBudget = 64ULL << 20;
  const std::vector<float> values(64 * 1024);
  const auto rows = ps::Tensor::of(std::span<const float>(values), {64, 1024});
  const double before = rss_mb();
  ps::Loader loader(ps::Dataset::from_tensor_slices(rows).repeat(2000).batch(256).prefetch(
                        {.steps = 200}),  // 200 MB
                    {.lookahead_bytes = kBudget});
  double most = 0;
  while (auto batch = loader.next())
    for (int i = 0; i < 20; ++i) most = std::max(most, rss_mb());
  limits.check("memory under a slow consumer, 64 MB of look-ahead allowed", most - before, 80,
               "MB");
}

void open_and_close(Limits& limits) {
  const auto open = [](int count) {
    for (int i = 0; i < count; ++i) {
      ps::Loader loader(numbers(100'000));
      for (int pulls = i % 4; pulls > 0; --pulls) loader.next();
    }
  };
  open(500);
  const double threads_before = threads();
  const double descriptors_before = descriptors();
  // A leak grows each time; an arena that malloc creates for a thread does so once.
  double memory_left = 1e9;
  for (int again = 0; again < 2; ++again) {
    const double rss_before = rss_mb();
    open(10'000);
    memory_left = std::min(memory_left, std::max(0.0, rss_mb() - rss_before));
  }
  limits.check("10,000 loaders opened and closed: threads left", threads() - threads_before, 0, "");
  limits.check("  descriptors left", descriptors() - descriptors_before, 0, "");
  limits.check("  memory left", memory_left, 1, "MB");
}

/// The look-ahead may grow up to its budget while the pool learns how long the consumer waits; with
/// a budget well below the limit, whatever passes the limit has leaked.
void flat(Limits& limits) {
  ps::Loader loader(numbers(10'000'000), {.lookahead_bytes = 256ULL << 10});
  const auto pass = [&loader] {
    while (loader.next()) {
    }
  };
  pass();
  const double before = rss_mb();
  for (int i = 0; i < 10; ++i) pass();
  limits.check("growth over 1e8 elements", std::max(0.0, rss_mb() - before), 1, "MB");
  limits.check("all of this process, resident", rss_mb(), 30, "MB");
}

}  // namespace

int main() {
  Limits limits;
  start(limits);
  resume(limits);
  open_and_close(limits);
  flat(limits);
  look_ahead(limits);  // last: what it used stays with the process
  return limits.finish();
}
