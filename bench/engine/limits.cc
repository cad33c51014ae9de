// Limits in seconds and megabytes: prints each figure beside its limit and fails beyond it.
// limits [--slack FACTOR]
#include <fmt/core.h>
#include <penstock/penstock.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "run/budget.h"

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
  explicit Limits(double slack) : slack_(slack) {}
  /// `slack` widens limits that depend on the machine's speed; others are exact.
  void check(const char* what, double value, double limit, const char* unit, bool machine = true) {
    const double allowed = machine ? limit * slack_ : limit;
    const bool held = value <= allowed;
    failed_ += held ? 0 : 1;
    ++checked_;
    fmt::print("{:<58} {:>10.2f} {:<3} limit {:>8.2f}  {}\n", what, value, unit, allowed,
               held ? "ok" : "BROKEN");
  }
  [[nodiscard]] int finish() const {
    fmt::print("{} passed, {} failed\n", checked_ - failed_, failed_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  double slack_;
  int checked_ = 0;
  int failed_ = 0;
};

ps::Dataset numbers(std::int64_t count) {
  return ps::Dataset::range(count)
      .map([](std::int64_t x) { return x * 2 + 1; })
      .shuffle({.seed = 1})
      .batch(256);
}

void start(Limits& limits) {
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const auto began = Clock::now();
    ps::Loader loader(numbers(5'000'000));
    loader.next();
    times.push_back(since(began));
  }
  std::ranges::sort(times);
  limits.check("first batch of tiny elements, dataset to batch (median)", times[10], 5, "ms");
}

void resume(Limits& limits) {
  constexpr std::int64_t kSamples = 1'000'000'000;
  ps::Loader at_start(numbers(kSamples));
  at_start.next();
  ps::State state = at_start.state();
  state.position = 900'000'000 / 256 * 256;
  state.step = state.position / 256;
  const std::string text = state.to_json();
  const auto began = Clock::now();
  ps::Loader resumed(numbers(kSamples));
  resumed.restore(ps::State::parse(text));
  const auto batch = resumed.next();
  limits.check("resume at position 9e8 of 1e9, to the first batch", since(began), 100, "ms");
  limits.check("state", static_cast<double>(text.size()), 1024, "B", false);
  if (batch->step() != state.step) std::abort();
}

/// A consumer that takes its time: what waits for it stays within the budget.
void look_ahead(Limits& limits) {
  constexpr std::uint64_t kBudget = 8ULL << 20;
  std::vector<float> values(64 * 1024);
  const auto rows = ps::Tensor::of(std::span<const float>(values), {64, 1024});
  ps::Loader loader(ps::Dataset::from_tensor_slices(rows).repeat(2000).batch(256),
                    {.lookahead_bytes = kBudget});
  std::uint64_t most = 0;
  while (auto batch = loader.next())
    for (int i = 0; i < 200; ++i) most = std::max(most, ps::ByteBudget::process().used());
  limits.check("look-ahead under a slow consumer", static_cast<double>(most) / 0x1p20,
               static_cast<double>(kBudget) / 0x1p20, "MB", false);
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
  const double rss_before = rss_mb();
  open(10'000);
  limits.check("10,000 loaders opened and closed: threads left", threads() - threads_before, 0, "",
               false);
  limits.check("  descriptors left", descriptors() - descriptors_before, 0, "", false);
  limits.check("  memory left", std::max(0.0, rss_mb() - rss_before), 1, "MB", false);
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
  limits.check("growth over 1e8 elements", std::max(0.0, rss_mb() - before), 1, "MB", false);
  limits.check("all of this process, resident", rss_mb(), 60, "MB", false);
}

}  // namespace

int main(int argc, char** argv) {
  const double slack = argc == 3 && std::strcmp(argv[1], "--slack") == 0 ? std::atof(argv[2]) : 1;
  Limits limits(slack);
  start(limits);
  resume(limits);
  look_ahead(limits);
  open_and_close(limits);
  flat(limits);
  return limits.finish();
}
