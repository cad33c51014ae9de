// tested in src/report/verdict_test.cc
#include "report/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "report/words.h"

namespace penstock {
namespace {

constexpr double kWorthSaying = 0.03;

class Estimates {
 public:
  Estimates(const trace::Recording& recording, const Load& load)
      : recording_(recording), facts_(recording.facts), load_(load) {}

  [[nodiscard]] std::vector<WhatIf> all() {
    if (load_.wall <= 0 || recording_.steps == 0) return {};
    more_threads();
    caches();
    workers();
    std::ranges::sort(found_, std::greater<>(), &WhatIf::gain);
    return std::move(found_);
  }

 private:
  /// The part of the time that is saved if the input has the load `changed`.
  [[nodiscard]] double gain(const Load& changed, double threads) const {
    return 1 - load_.predicted_wall(changed.input_seconds(threads)) / load_.wall;
  }
  void add(std::string change, double saved, std::string text) {
    if (saved >= kWorthSaying) found_.push_back({std::move(change), saved, std::move(text)});
  }

  void more_threads() {
    const unsigned most = facts_.pool_threads;
    if (most <= facts_.threads) return;
    const double saved = gain(load_, most);
    add(fmt::format("threads={}", most), saved,
        fmt::format("{} threads instead of {} would save about {}.", most, facts_.threads,
                    percent_text(saved)));
  }

  /// Caches before the first random op: what they hold may be repeated.
  void caches() {
    Load changed = load_;
    const trace::PlannedOp* last = nullptr;
    const trace::OpRecord* last_record = nullptr;
    const double delay = delay_share(recording_);
    unsigned sources = 0;
    for (const trace::OpRecord& record : recording_.ops) {
      if (std::ranges::find(facts_.ops, record.title, &trace::PlannedOp::title) != facts_.ops.end())
        continue;
      ++sources;  // they are not planned
      changed.remove(op_report(record, delay), record.lock > 0);
    }
    if (sources > 1) return;  // which ops follow which source is not recorded
    for (const trace::PlannedOp& planned : facts_.ops) {
      if (planned.random || planned.whole) break;
      if (planned.cache) return;  // there is one already
      const auto record = std::ranges::find(recording_.ops, planned.title, &trace::OpRecord::title);
      if (record == recording_.ops.end()) continue;
      changed.remove(op_report(*record, delay), record->lock > 0);
      last = &planned;
      last_record = &*record;
    }
    if (last == nullptr) return;
    const double saved = gain(changed, load_.threads);
    const std::string name = plain_name(last->title);
    const std::string memory =
        last_record->bytes == 0
            ? std::string()
            : fmt::format(", and take {}", bytes_text(static_cast<double>(last_record->bytes)));
    add(fmt::format("cache after {}", name), saved,
        fmt::format("cache() after {} would save about {} of later epochs{}.", name,
                    percent_text(saved), memory));
  }

  /// Functions that hold the interpreter's lock, in processes.
  void workers() {
    if (load_.interpreted <= 0 || load_.lock < 0.05 * load_.ops || facts_.cores < 2) return;
    Load changed = load_;
    const auto processes = static_cast<double>(facts_.cores);
    changed.interpreted = 0;
    changed.lock = 0;
    const double saved = gain(changed, std::max(load_.threads, processes));
    const auto record = std::ranges::max_element(recording_.ops, {}, &trace::OpRecord::lock);
    const std::string name = plain_name(record->title);
    add(fmt::format("workers={} for {}", facts_.cores, name), saved,
        fmt::format("{} worker processes for {} would save about {}.", facts_.cores, name,
                    percent_text(saved)));
  }

  const trace::Recording& recording_;
  const trace::RunFacts& facts_;
  const Load& load_;
  std::vector<WhatIf> found_;
};

}  // namespace

std::vector<WhatIf> what_if(const trace::Recording& recording, const Load& load) {
  return Estimates(recording, load).all();
}

}  // namespace penstock
