#include "report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "report/words.h"
#include "trace/histogram.h"

namespace penstock {
namespace {

// The thresholds of the verdict. Each was chosen with bench/report/verdicts.py, whose situations
// lie on both sides of it.
constexpr double kHealthyWait = 0.05;     // of the time
constexpr double kReplicaRatio = 1.3;     // of the slowest replica's time to the median
constexpr double kOthersBusy = 0.25;      // of the time of the pool's threads
constexpr double kRunDelay = 0.3;         // of the work
constexpr double kProcessBusy = 0.75;     // of the cores
constexpr double kAllBusy = 0.8;          // of the threads
constexpr double kPulling = 0.5;          // of the wait
constexpr double kAtBytes = 0.4;          // of the wait
constexpr double kStragglerRatio = 8;     // to the median
constexpr double kStragglersTime = 0.25;  // of the work of ops
constexpr double kStragglersMost = 0.1;   // of the rows
constexpr double kShortStep = 50e-6;      // seconds
constexpr double kFewRows = 16;           // of a step
constexpr double kMainPart = 0.4;         // of the work of ops
constexpr double kRetries = 0.25;         // of the work of ops
constexpr double kLockBusy = 0.5;         // of the time, by functions that hold the lock
constexpr double kOverhead = 0.5;         // of the work

/// The rows of an op that take many times as long as its median.
struct SlowRows {
  double part = 0;     // of its rows
  double seconds = 0;  // all of them together
  double each = 0;
  double median = 0;
};
SlowRows slow_rows(const trace::OpRecord& op) {
  constexpr double kSecond = 1e-9;
  SlowRows slow;
  slow.median = trace::percentile(op.durations, 0.5) * kSecond;
  double all = 0;
  double rows = 0;
  for (std::size_t bucket = 0; bucket < op.durations.size(); ++bucket) {
    const auto count = static_cast<double>(op.durations[bucket]);
    const double each = trace::middle_of_bucket(bucket) * kSecond;
    all += count;
    if (each < kStragglerRatio * slow.median) continue;
    rows += count;
    slow.seconds += count * each;
  }
  // Many of them are no exceptions: then the op is slow.
  if (rows == 0 || slow.median <= 0 || rows > kStragglersMost * all) return {};
  slow.part = rows / all;
  slow.each = slow.seconds / rows;
  slow.seconds *= std::max(1.0, static_cast<double>(op.rows) / all);  // not all were measured
  return slow;
}

/// What the rules look at.
class Rules {
 public:
  Rules(const trace::Recording& recording, const Load& load, const Report& report)
      : recording_(recording), load_(load), report_(report), facts_(recording.facts) {}

  [[nodiscard]] Verdict verdict() const {
    if (report_.steps == 0) return {Cause::nothing_ran, "No batch was delivered.", {}};
    using Rule = std::optional<Verdict> (Rules::*)() const;
    constexpr Rule kRules[] = {&Rules::cache_after_random,
                               &Rules::slow_replica,
                               &Rules::tiny_steps,
                               &Rules::healthy,
                               &Rules::start_up,
                               &Rules::other_loaders,
                               &Rules::retries,
                               &Rules::memory,
                               &Rules::in_order,
                               &Rules::stragglers,
                               &Rules::lock,
                               &Rules::other_programs,
                               &Rules::small_steps,
                               &Rules::reading,
                               &Rules::processes,
                               &Rules::function_waits,
                               &Rules::whole_batches};
    for (const Rule rule : kRules)
      if (auto found = (this->*rule)()) return *std::move(found);
    return compute();
  }

 private:
  [[nodiscard]] double wait_share() const { return load_.wall > 0 ? load_.wait / load_.wall : 0; }
  /// The part of the waits for which something was so.
  [[nodiscard]] double of_wait(double seconds) const {
    return recording_.waits.seconds > 0 ? seconds / recording_.waits.seconds : 0;
  }
  [[nodiscard]] std::string waited() const {
    return fmt::format("Training waited {} of the time for input: ", percent_text(wait_share()));
  }
  [[nodiscard]] std::string threads_text() const {
    if (facts_.threads == 0) return "the training thread does it itself";
    if (facts_.threads == 1)
      return load_.busy >= kAllBusy
                 ? std::string("the only thread is busy")
                 : fmt::format("the only thread is busy {} of that time", percent_text(load_.busy));
    if (load_.busy >= kAllBusy * load_.threads)
      return fmt::format("{} are busy", facts_.threads == 2
                                            ? std::string("both threads")
                                            : fmt::format("all {} threads", facts_.threads));
    return fmt::format("{:.1f} of {} threads are busy", load_.busy, facts_.threads);
  }
  /// The op with the largest value; null if there is no op.
  [[nodiscard]] const OpReport* top(const std::function<double(const OpReport&)>& value) const {
    const auto found = std::ranges::max_element(report_.ops, {}, value);
    return found == report_.ops.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::string top_name(double OpReport::* part) const {
    const OpReport* const op = top([part](const OpReport& each) { return each.*part; });
    return op == nullptr ? "the input" : op->name;
  }
  [[nodiscard]] std::string best_change() const {
    return report_.what_if.empty() ? std::string() : report_.what_if.front().text;
  }
  [[nodiscard]] double of_ops(double part) const { return load_.ops > 0 ? part / load_.ops : 0; }

  [[nodiscard]] std::optional<Verdict> cache_after_random() const {
    const auto cache = std::ranges::find_if(
        facts_.ops, [](const trace::PlannedOp& op) { return op.cache && !op.repeats.empty(); });
    if (cache == facts_.ops.end()) return std::nullopt;
    const std::string random = plain_name(cache->repeats);
    return Verdict{Cause::cache_after_random,
                   fmt::format("{} draws random numbers before cache(), so every epoch repeats "
                               "those of the first one; training waited {} of the time for input.",
                               random, percent_text(wait_share())),
                   fmt::format("Move cache() before {}, or write cache(place=\"auto\").", random)};
  }

  [[nodiscard]] std::optional<Verdict> slow_replica() const {
    if (report_.replicas.size() < 2) return std::nullopt;
    std::vector<double> busy;
    double lost = 0;
    for (const ReplicaReport& replica : report_.replicas) {
      busy.push_back(replica.busy_seconds);
      lost = std::max(lost, replica.wait_seconds);
    }
    const auto slowest = std::ranges::max_element(busy);
    const auto number = static_cast<std::size_t>(slowest - busy.begin());
    const double longest = *slowest;
    std::ranges::sort(busy);
    const double median = busy[(busy.size() - 1) / 2];
    if (longest < kReplicaRatio * median || lost < load_.wait || lost < kHealthyWait * load_.wall)
      return std::nullopt;
    const std::string& name = report_.replicas[number].name;
    return Verdict{
        Cause::slow_replica,
        fmt::format("{} is slow: it took {} for its shares, the others {}, and they waited for it "
                    "{} of the time.",
                    name, seconds_text(longest), seconds_text(median),
                    percent_text(load_.wall > 0 ? lost / load_.wall : 0)),
        fmt::format("See what else runs on the device of {}; its shares are not larger than the "
                    "others'.",
                    name)};
  }

  /// Steps that follow each other so fast that nothing but taking them can be the limit.
  [[nodiscard]] std::optional<Verdict> tiny_steps() const {
    const double each = load_.wall / static_cast<double>(report_.steps);
    const double rows = static_cast<double>(report_.rows) / static_cast<double>(report_.steps);
    if (each > kShortStep || rows > kFewRows) return std::nullopt;
    return Verdict{Cause::small_steps,
                   fmt::format("A batch has only {}, and taking one costs more than its work: {} "
                               "a batch; training waited {} of the time for input.",
                               counted_text(static_cast<std::uint64_t>(rows + 0.5), "sample"),
                               seconds_text(each), percent_text(wait_share())),
                   "Use larger batches."};
  }

  [[nodiscard]] std::optional<Verdict> healthy() const {
    if (wait_share() >= kHealthyWait) return std::nullopt;
    std::string text =
        fmt::format("Training waited {} of the time for input, which is as it should be",
                    percent_text(wait_share()));
    const double headroom = report_.consumer_rows_per_second > 0
                                ? report_.input_rows_per_second / report_.consumer_rows_per_second
                                : 0;
    if (headroom >= 1.1)
      text +=
          fmt::format(": the input could deliver {:.1f} times as fast as training asks", headroom);
    return Verdict{Cause::healthy, text + ".", {}};
  }

  [[nodiscard]] std::optional<Verdict> start_up() const {
    const double later = recording_.waits.seconds - recording_.waits.first;
    if (facts_.threads == 0 || load_.wall <= 0 || later >= kHealthyWait * load_.wall ||
        recording_.waits.first < later)
      return std::nullopt;
    return Verdict{
        Cause::start_up,
        fmt::format("Training waited {} for the first batch, and then {} of the time.",
                    seconds_text(recording_.waits.first), percent_text(later / load_.wall)),
        "The first batch cannot be prepared in advance; longer epochs make it rarer."};
  }

  [[nodiscard]] std::optional<Verdict> other_loaders() const {
    const double pool = std::max(1U, facts_.pool_threads) * load_.wall;
    const double others = pool > 0 ? recording_.others / pool : 0;
    if (facts_.threads == 0 || others < kOthersBusy || load_.busy >= kAllBusy * load_.threads ||
        recording_.others < 0.3 * recording_.work)
      return std::nullopt;
    return Verdict{Cause::other_loaders,
                   fmt::format("{}other loaders of this process take {} of the threads' time.",
                               waited(), percent_text(others)),
                   "Close loaders that are not needed, or give each its own number of threads."};
  }

  [[nodiscard]] std::optional<Verdict> retries() const {
    if (of_ops(load_.retry) < kRetries) return std::nullopt;
    const std::string first = report_.retries.empty() ? "" : report_.retries.front();
    return Verdict{Cause::retries,
                   fmt::format("{}{} of the work is pauses before retries ({} of them).", waited(),
                               percent_text(of_ops(load_.retry)), number_text(report_.retried)),
                   first.empty() ? std::string() : fmt::format("The first one: {}.", first)};
  }

  [[nodiscard]] std::optional<Verdict> memory() const {
    if (of_wait(recording_.waits.at_bytes) < kAtBytes || load_.busy >= kAllBusy * load_.threads)
      return std::nullopt;
    return Verdict{
        Cause::memory,
        fmt::format("{}batches in preparation may use {}, and one has {}, so that {}.", waited(),
                    bytes_text(static_cast<double>(facts_.bytes_max)),
                    bytes_text(static_cast<double>(recording_.step_bytes)), threads_text()),
        "Raise lookahead_bytes, or make batches smaller."};
  }

  [[nodiscard]] std::optional<Verdict> in_order() const {
    if (!facts_.stream || of_wait(recording_.waits.pulling) < kPulling ||
        (load_.threads > 1 && of_wait(recording_.waits.one_busy) < kPulling))
      return std::nullopt;
    const OpReport* const op = top([](const OpReport& each) { return each.seconds; });
    return Verdict{
        Cause::in_order,
        fmt::format("{}it is a stream, which one thread reads in order, and {} takes {} of that "
                    "time.",
                    waited(), op == nullptr ? "the generator" : op->name,
                    percent_text(op == nullptr ? 1 : op->share)),
        "Move work out of the generator into map(), or use data with a length (from_index, "
        "files), which all threads compute."};
  }

  [[nodiscard]] std::optional<Verdict> stragglers() const {
    const bool all_busy = load_.busy >= kAllBusy * load_.threads;
    const trace::OpRecord* op = nullptr;
    SlowRows slow;
    for (const trace::OpRecord& each : recording_.ops) {
      const SlowRows rows = slow_rows(each);
      if (rows.seconds > slow.seconds) {
        slow = rows;
        op = &each;
      }
    }
    // If threads are idle meanwhile, less of the time is enough.
    const double part = all_busy ? 2 * kStragglersTime : kStragglersTime;
    if (op == nullptr || slow.seconds < part * load_.ops) return std::nullopt;
    const auto found = std::ranges::find(report_.slowest, plain_name(op->title), &SlowSample::op);
    const SlowSample* const worst = found == report_.slowest.end() ? nullptr : &*found;
    std::string advice = "Batches come in order, so a slow sample holds up those after it.";
    if (worst != nullptr)
      advice +=
          fmt::format(" The slowest: sample {}{}{}, {}.", worst->sample,
                      worst->file.empty() ? "" : ", ", worst->file, seconds_text(worst->seconds));
    return Verdict{
        Cause::stragglers,
        fmt::format("{}{} of the samples take {:.0f} times as long as the others in {} "
                    "({} instead of {}).",
                    waited(), percent_text(slow.part), slow.each / slow.median,
                    plain_name(op->title), seconds_text(slow.each), seconds_text(slow.median)),
        advice};
  }

  [[nodiscard]] std::optional<Verdict> lock() const {
    const double held = load_.wall > 0 ? load_.interpreted / load_.wall : 0;
    if (facts_.threads == 0 || of_ops(load_.lock) < 0.15) return std::nullopt;
    if (held < kLockBusy && of_ops(load_.lock) < kMainPart) return std::nullopt;
    if (held < kLockBusy && load_.lock < load_.interpreted) return std::nullopt;
    const std::string name = top_name(&OpReport::lock_seconds);
    if (held < kLockBusy)
      return Verdict{Cause::interpreter_lock,
                     fmt::format("{}{} waits for Python's lock, which other threads of the program "
                                 "hold ({} of its time).",
                                 waited(), name, percent_text(of_ops(load_.lock))),
                     "Run it in processes: map(fn, workers=2)."};
    return Verdict{Cause::interpreter_lock,
                   fmt::format("{}{} needs Python's lock, which only one thread at a time can hold "
                               "({} of the time).",
                               waited(), name, percent_text(std::min(1.0, held))),
                   fmt::format("Run it in processes: map(fn, workers={}). {}",
                               std::max(2U, facts_.cores), best_change())};
  }

  [[nodiscard]] std::optional<Verdict> other_programs() const {
    const double computed = load_.cpu + load_.overhead - recording_.run_delay;
    if (delay_share(recording_) < kRunDelay || load_.wall <= 0 ||
        computed > kProcessBusy * load_.cores * load_.wall)
      return std::nullopt;
    return Verdict{
        Cause::other_programs,
        fmt::format("{}no CPU was free for {} of the work, although this process used {:.1f} of "
                    "{} cores.",
                    waited(), percent_text(delay_share(recording_)),
                    std::max(0.0, computed / load_.wall), facts_.cores),
        "Other programs, or other threads of this one, use the CPUs."};
  }

  [[nodiscard]] std::optional<Verdict> small_steps() const {
    if (recording_.work <= 0 || load_.overhead < kOverhead * recording_.work || report_.steps == 0)
      return std::nullopt;
    const double rows = static_cast<double>(report_.rows) / static_cast<double>(report_.steps);
    if (rows > 4 * kFewRows) return std::nullopt;
    return Verdict{Cause::small_steps,
                   fmt::format("{}a batch has only {:.0f} samples, and {} of the work is the fixed "
                               "cost of batches.",
                               waited(), rows, percent_text(load_.overhead / recording_.work)),
                   "Use larger batches."};
  }

  [[nodiscard]] std::optional<Verdict> reading() const {
    if (of_ops(load_.read) < kMainPart) return std::nullopt;
    const double rate = recording_.reads.seconds > 0
                            ? static_cast<double>(recording_.reads.bytes) / recording_.reads.seconds
                            : 0;
    return Verdict{Cause::reading,
                   fmt::format("{}{} of the work is reading files ({} a read, {}/s).", waited(),
                               percent_text(of_ops(load_.read)),
                               seconds_text(recording_.reads.count > 0
                                                ? recording_.reads.seconds /
                                                      static_cast<double>(recording_.reads.count)
                                                : 0),
                               bytes_text(rate)),
                   "Keep the files on a faster disk, or cache(\"folder\") what is read."};
  }

  [[nodiscard]] std::optional<Verdict> processes() const {
    if (of_ops(load_.process) < kMainPart) return std::nullopt;
    return Verdict{Cause::worker_processes,
                   fmt::format("{}{} keeps its worker processes busy.", waited(),
                               top_name(&OpReport::process_seconds)),
                   "Give it more worker processes if there are cores for them."};
  }

  [[nodiscard]] std::optional<Verdict> function_waits() const {
    if (of_ops(load_.blocked) < kMainPart) return std::nullopt;
    return Verdict{
        Cause::function_waits,
        fmt::format("{}{} sleeps, or waits for something outside this process, for {} of "
                    "the work.",
                    waited(), top_name(&OpReport::blocked_seconds),
                    percent_text(of_ops(load_.blocked))),
        "Run it in worker processes, also more than there are cores (map(fn, "
        "workers=n)), or make fewer requests."};
  }

  [[nodiscard]] std::optional<Verdict> whole_batches() const {
    const OpReport* const op = top([](const OpReport& each) { return each.seconds; });
    if (op == nullptr || facts_.threads < 2 || load_.busy >= kAllBusy * load_.threads)
      return std::nullopt;
    const auto planned = std::ranges::find_if(facts_.ops, [&](const trace::PlannedOp& each) {
      return plain_name(each.title) == op->name;
    });
    if (planned == facts_.ops.end() || !planned->whole || op->share < kMainPart)
      return std::nullopt;
    return Verdict{
        Cause::whole_batches,
        fmt::format("{}{} computes whole batches, one call for each, and takes {} of the "
                    "work while {}.",
                    waited(), op->name, percent_text(op->share), threads_text()),
        "Make it a function of single samples, or let more batches be prepared at a "
        "time (prefetch)."};
  }

  [[nodiscard]] Verdict compute() const {
    const OpReport* const op = top([](const OpReport& each) { return each.seconds; });
    const bool few = facts_.threads < facts_.cores;
    std::string text = waited();
    if (op == nullptr || load_.overhead > op->seconds)
      text += fmt::format("copying and bookkeeping take {} of the work",
                          percent_text(recording_.work > 0 ? load_.overhead / recording_.work : 1));
    else
      text += fmt::format("{} takes {} of the work", op->name, percent_text(op->share));
    text += fmt::format(" and {}.", threads_text());
    std::string advice = best_change();
    if (few) {
      const auto threads = std::ranges::find_if(
          report_.what_if, [](const WhatIf& each) { return each.change.starts_with("threads="); });
      advice = threads == report_.what_if.end()
                   ? fmt::format("{} cores are usable: leave out threads=.", facts_.cores)
                   : threads->text;
    }
    return {few ? Cause::few_threads : Cause::compute, text, advice};
  }

  const trace::Recording& recording_;
  const Load& load_;
  const Report& report_;
  const trace::RunFacts& facts_;
};

}  // namespace

const char* cause_name(Cause cause) {
  switch (cause) {
    case Cause::nothing_ran:
      return "nothing_ran";
    case Cause::healthy:
      return "healthy";
    case Cause::start_up:
      return "start_up";
    case Cause::compute:
      return "compute";
    case Cause::few_threads:
      return "few_threads";
    case Cause::interpreter_lock:
      return "interpreter_lock";
    case Cause::function_waits:
      return "function_waits";
    case Cause::worker_processes:
      return "worker_processes";
    case Cause::reading:
      return "reading";
    case Cause::retries:
      return "retries";
    case Cause::in_order:
      return "in_order";
    case Cause::whole_batches:
      return "whole_batches";
    case Cause::stragglers:
      return "stragglers";
    case Cause::memory:
      return "memory";
    case Cause::small_steps:
      return "small_steps";
    case Cause::other_loaders:
      return "other_loaders";
    case Cause::other_programs:
      return "other_programs";
    case Cause::slow_replica:
      return "slow_replica";
    case Cause::cache_after_random:
      return "cache_after_random";
  }
  return "unknown";
}

Verdict verdict_of(const trace::Recording& recording, const Load& load, const Report& report) {
  return Rules(recording, load, report).verdict();
}

}  // namespace penstock
