#include "trace/recorder.h"

#include <pthread.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/thread_times.h"
#include "trace/blocked.h"

namespace penstock::trace {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr double kSecond = 1e-9;
constexpr std::size_t kDecisionsMax = 256;
constexpr std::size_t kRetriesMax = 32;
constexpr std::size_t kReplicasMax = 1024;

std::uint64_t count_of(Nanoseconds time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()));
}
double seconds_of(const std::atomic<std::uint64_t>& nanoseconds) {
  return static_cast<double>(nanoseconds.load(kRelaxed)) * kSecond;
}
void keep_max(std::atomic<std::uint64_t>& largest, std::uint64_t value) {
  std::uint64_t before = largest.load(kRelaxed);
  while (before < value && !largest.compare_exchange_weak(before, value, kRelaxed)) {
  }
}

/// Work of all runs of the process, in nanoseconds.
std::atomic<std::uint64_t> process_work{0};

/// A fork waits until no thread changes the list.
class LiveRuns {
 public:
  LiveRuns();
  void add(const std::shared_ptr<Recorder>& run) {
    Lock lock(mutex_);
    std::erase_if(runs_, [](const auto& each) { return each.expired(); });
    runs_.push_back(run);
  }
  [[nodiscard]] std::vector<std::shared_ptr<Recorder>> all() {
    std::vector<std::shared_ptr<Recorder>> found;
    Lock lock(mutex_);
    for (const auto& run : runs_)
      if (auto live = run.lock()) found.push_back(std::move(live));
    return found;
  }
  void stop_changing() PENSTOCK_ANNOTATE(no_thread_safety_analysis) { mutex_.lock(); }
  void go_on() PENSTOCK_ANNOTATE(no_thread_safety_analysis) { mutex_.unlock(); }

 private:
  Mutex mutex_;
  std::vector<std::weak_ptr<Recorder>> runs_ PENSTOCK_GUARDED_BY(mutex_);
};
LiveRuns* const made_live = new LiveRuns;  // never destroyed: runs may outlive static objects
LiveRuns::LiveRuns() {
  pthread_atfork([] { made_live->stop_changing(); }, [] { made_live->go_on(); },
                 [] { made_live->go_on(); });
}

}  // namespace

std::vector<std::shared_ptr<Recorder>> live_runs() {
  return made_live->all();
}
void add_live_run(const std::shared_ptr<Recorder>& run) {
  made_live->add(run);
}

Recorder::Recorder(RunFacts facts, Clock& clock, NameSample name_sample)
    : facts_(std::move(facts)),
      clock_(clock),
      real_time_(&clock == &Clock::real()),
      name_sample_(std::move(name_sample)),
      run_(new_run()),
      began_(count_of(clock.now())),
      others_before_(process_work.load(kRelaxed)) {}

Recorder::~Recorder() = default;

OpTotals& Recorder::op(const std::string& title) {
  const std::size_t start = std::hash<std::string>()(title);
  for (std::size_t i = 0; i + 1 < kOpsMax; ++i) {
    OpTotals& totals = ops_[(start + i) % (kOpsMax - 1)];
    if (!totals.used.load(std::memory_order_acquire)) {
      Lock lock(mutex_);
      if (!totals.used.load(kRelaxed)) {
        totals.title = title;
        totals.used.store(true, std::memory_order_release);
        return totals;
      }
    }
    if (totals.title == title) return totals;
  }
  OpTotals& rest = ops_.back();
  Lock lock(mutex_);
  if (!rest.used.load(kRelaxed)) {
    rest.title = "other ops";
    rest.used.store(true, std::memory_order_release);
  }
  return rest;
}

void Recorder::op_called(const OpTotals& totals, Event event) {
  event.kind = Kind::op;
  event.run = run_;
  event.op = static_cast<std::uint16_t>(index_of(totals));
  record(event);
  keep_if_slow(totals, event);
}

void Recorder::keep_if_slow(const OpTotals& totals, const Event& event) {
  const std::uint64_t rows = std::max<std::uint64_t>(1, event.rows);
  const std::uint64_t took = (event.end - event.start) / rows;
  if (took <= slow_enough_.load(kRelaxed)) return;
  const auto per_row = [](const Slow& slow) {
    return (slow.event.end - slow.event.start) / std::max<std::uint64_t>(1, slow.event.rows);
  };
  Lock lock(mutex_);
  if (slow_.size() == kSlowMax) slow_.erase(std::ranges::min_element(slow_, {}, per_row));
  slow_.push_back({&totals, event});
  if (slow_.size() == kSlowMax)
    slow_enough_ = per_row(*std::ranges::min_element(slow_, {}, per_row));
}

void Recorder::note_run_delay(Nanoseconds now) {
  constexpr Nanoseconds kEvery = std::chrono::milliseconds(20);
  thread_local Nanoseconds looked{0};
  thread_local std::uint64_t delay = 0;
  if (!real_time_ || now - looked < kEvery) return;
  const std::uint64_t all = run_delay_here();
  // The first look of a thread, or the first after a pause, is about time before this run.
  if (looked.count() > 0 && now - looked < 10 * kEvery)
    run_delay_.fetch_add(all - std::min(all, delay), kRelaxed);
  looked = now;
  delay = all;
}

void Recorder::task_ended(Kind kind, std::uint64_t step, std::uint64_t rows, Nanoseconds began,
                          Nanoseconds ended) {
  const std::uint64_t took = count_between(began, ended);
  tasks_.fetch_add(1, kRelaxed);
  work_.fetch_add(took, kRelaxed);
  process_work.fetch_add(took, kRelaxed);
  if (kind == Kind::pull) pulled_.fetch_add(took, kRelaxed);
  record({kind, run_, static_cast<std::uint32_t>(rows), step, count_of(began), count_of(ended)});
  note_run_delay(ended);
}

void Recorder::ready(std::uint64_t step, std::uint64_t rows, Nanoseconds began, Nanoseconds ended) {
  record({Kind::ready, run_, static_cast<std::uint32_t>(rows), step, count_of(began),
          count_of(ended)});
}

void Recorder::read(Nanoseconds began, Nanoseconds ended, std::uint64_t bytes, bool ahead) {
  reads_.fetch_add(1, kRelaxed);
  read_bytes_.fetch_add(bytes, kRelaxed);
  read_time_.fetch_add(count_between(began, ended), kRelaxed);
  if (ahead) record({Kind::read, run_, 1, 0, count_of(began), count_of(ended)});
}

void Recorder::retried(const std::string& what) {
  retried_.fetch_add(1, kRelaxed);
  Lock lock(mutex_);
  if (retries_.size() < kRetriesMax) retries_.push_back(what);
}

void Recorder::reads_ahead(unsigned threads, double latency_seconds) {
  read_threads_.store(std::max(threads, read_threads_.load(kRelaxed)), kRelaxed);
  read_latency_.store(latency_seconds, kRelaxed);
}

void Recorder::note_time(Nanoseconds now) {
  last_.store(count_of(now), kRelaxed);
  const std::uint64_t all = process_work.load(kRelaxed) - others_before_;
  others_.store(all - std::min(all, work_.load(kRelaxed)), kRelaxed);
}

void Recorder::requested(Nanoseconds now) {
  if (requested_.load(kRelaxed) == 0) requested_.store(std::max<std::uint64_t>(1, count_of(now)));
}

void Recorder::waiting(const WaitView& view, Nanoseconds began, Nanoseconds ended) {
  const std::uint64_t took = count_between(began, ended);
  const auto add = [&](std::size_t part, std::uint64_t amount) {
    wait_parts_[part].fetch_add(amount, kRelaxed);
  };
  add(0, took * view.busy);
  if (view.busy == 1) add(1, took);
  if (view.pulling) add(2, took);
  if (view.at_limit) add(3, took);
  if (view.at_bytes) add(4, took);
  if (view.busy == 0) add(5, took);
  wait_time_.fetch_add(took, kRelaxed);
  waited_since_ += took;
  note_time(ended);
}

void Recorder::waited(std::uint64_t step, Nanoseconds began, Nanoseconds ended) {
  waits_.fetch_add(1, kRelaxed);
  const std::uint64_t took = count_between(began, ended);
  if (steps_.load(kRelaxed) == 0) first_wait_.fetch_add(took, kRelaxed);
  if (took > longest_.load(kRelaxed)) {
    longest_.store(took, kRelaxed);
    longest_step_.store(step, kRelaxed);
  }
  record({Kind::waited, run_, 0, step, count_of(began), count_of(ended)});
}

void Recorder::delivered(const Delivered& delivery) {
  record({Kind::delivered, run_, static_cast<std::uint32_t>(delivery.rows), delivery.step,
          delivery.now, delivery.now});
  note_time(Nanoseconds(static_cast<std::int64_t>(delivery.now)));
  steps_.fetch_add(1, kRelaxed);
  rows_.fetch_add(delivery.rows, kRelaxed);
  window_.store(delivery.window, kRelaxed);
  keep_max(step_bytes_, delivery.step_bytes);
  keep_max(in_flight_max_, delivery.in_flight);
  keep_max(budget_max_, delivery.budget_used);
  const std::uint64_t worked = work_.load(kRelaxed);
  const std::uint64_t others = others_.load(kRelaxed);
  series_.add(delivery.now - std::min(delivery.now, began_),
              {delivery.rows, std::exchange(waited_since_, 0),
               worked - std::exchange(worked_before_, worked),
               others - std::min(others, std::exchange(others_by_then_, others)),
               delivery.budget_used, delivery.in_flight, delivery.window});
}

void Recorder::replica(std::uint32_t number, const std::string& name, std::uint64_t step,
                       std::uint64_t rows, Nanoseconds began, Nanoseconds ended,
                       Nanoseconds all_ended) {
  if (number >= kReplicasMax) return;
  record({Kind::replica, run_, static_cast<std::uint32_t>(rows), step, count_of(began),
          count_of(ended), static_cast<std::uint16_t>(number)});
  Lock lock(mutex_);
  if (replicas_.size() <= number) replicas_.resize(number + 1);
  ReplicaRecord& replica = replicas_[number];
  if (replica.name.empty()) replica.name = name;
  ++replica.steps;
  replica.rows += rows;
  replica.busy += static_cast<double>(count_between(began, ended)) * kSecond;
  replica.waited += static_cast<double>(count_between(ended, all_ended)) * kSecond;
}

void Recorder::decided(std::string text) {
  const std::uint64_t now = count_of(clock_.now());
  Lock lock(mutex_);
  if (decisions_.size() < kDecisionsMax)
    decisions_.push_back(
        {static_cast<double>(now - std::min(now, began_)) * kSecond, std::move(text)});
}

std::vector<DecisionRecord> Recorder::decisions() const {
  Lock lock(mutex_);
  return decisions_;
}

std::vector<OpRecord> Recorder::op_records() const {
  std::vector<OpRecord> records;
  for (const OpTotals& totals : ops_) {
    if (!totals.used.load(std::memory_order_acquire)) continue;
    OpRecord op;
    op.title = totals.title;
    op.calls = totals.calls.load(kRelaxed);
    op.rows = totals.rows.load(kRelaxed);
    op.bytes = totals.bytes.load(kRelaxed);
    const auto measured = static_cast<double>(totals.measured_rows.load(kRelaxed));
    const double scale = measured == 0 ? 1 : static_cast<double>(op.rows) / measured;
    op.seconds = seconds_of(totals.nanoseconds) * scale;
    op.lock = seconds_of(totals.lock) * scale;
    op.process = seconds_of(totals.process) * scale;
    op.read = seconds_of(totals.read) * scale;
    op.retry = seconds_of(totals.retry) * scale;
    op.read_bytes =
        static_cast<std::uint64_t>(static_cast<double>(totals.read_bytes.load(kRelaxed)) * scale);
    if (const std::uint64_t of = totals.cpu_of.load(kRelaxed); of > 0)
      op.cpu =
          std::min(1.0, static_cast<double>(totals.cpu.load(kRelaxed)) / static_cast<double>(of));
    op.durations = totals.durations.counts();
    records.push_back(std::move(op));
  }
  // Sources are not among the ops of the plan: they come first.
  const auto place = [&](const OpRecord& op) {
    const auto found = std::ranges::find(facts_.ops, op.title, &PlannedOp::title);
    return found == facts_.ops.end() ? -1 : found - facts_.ops.begin();
  };
  std::ranges::sort(records, [&](const OpRecord& a, const OpRecord& b) {
    return std::pair(place(a), a.title) < std::pair(place(b), b.title);
  });
  return records;
}

WaitRecord Recorder::wait_record() const {
  WaitRecord waits;
  waits.count = waits_.load(kRelaxed);
  waits.seconds = seconds_of(wait_time_);
  waits.first = seconds_of(first_wait_);
  waits.longest = seconds_of(longest_);
  waits.longest_step = longest_step_.load(kRelaxed);
  waits.busy = seconds_of(wait_parts_[0]);
  waits.one_busy = seconds_of(wait_parts_[1]);
  waits.pulling = seconds_of(wait_parts_[2]);
  waits.at_limit = seconds_of(wait_parts_[3]);
  waits.at_bytes = seconds_of(wait_parts_[4]);
  waits.none_busy = seconds_of(wait_parts_[5]);
  return waits;
}

Recording Recorder::totals() const {
  Recording made;
  made.facts = facts_;
  const std::uint64_t requested = requested_.load(kRelaxed);
  const std::uint64_t last = last_.load(kRelaxed);
  made.wall = requested == 0 ? 0 : static_cast<double>(last - std::min(last, requested)) * kSecond;
  made.steps = steps_.load(kRelaxed);
  made.ended = ended_.load(kRelaxed) ||
               (facts_.end_step && facts_.first_step + made.steps >= *facts_.end_step);
  made.rows = rows_.load(kRelaxed);
  made.waits = wait_record();
  made.tasks = tasks_.load(kRelaxed);
  made.work = seconds_of(work_);
  made.pulled = seconds_of(pulled_);
  made.others = seconds_of(others_);
  made.run_delay = seconds_of(run_delay_);
  made.ops = op_records();
  made.reads.count = reads_.load(kRelaxed);
  made.reads.bytes = read_bytes_.load(kRelaxed);
  made.reads.seconds = seconds_of(read_time_);
  made.reads.threads = read_threads_.load(kRelaxed);
  made.reads.latency = read_latency_.load(kRelaxed);
  made.reads.retried = retried_.load(kRelaxed);
  made.step_bytes = step_bytes_.load(kRelaxed);
  made.window = window_.load(kRelaxed);
  made.in_flight_max = in_flight_max_.load(kRelaxed);
  made.bytes_used_max = budget_max_.load(kRelaxed);
  made.skipped = skipped_.load(kRelaxed);
  made.series = series_.copy();
  std::vector<Slow> slow;
  {
    Lock lock(mutex_);
    made.reads.retries = retries_;
    made.replicas = replicas_;
    made.decisions = decisions_;
    slow = slow_;
  }
  for (const Slow& each : slow) {
    const SampleName name = name_sample_ ? name_sample_(each.event.sample) : SampleName{};
    made.slowest.push_back({each.op->title, name.sample, name.file, each.event.rows,
                            each.event.step,
                            static_cast<double>(each.event.end - each.event.start) * kSecond});
  }
  std::ranges::sort(made.slowest, std::greater<>(), [](const SlowCall& call) {
    return call.seconds / static_cast<double>(std::max<std::uint64_t>(1, call.rows));
  });
  return made;
}

Recording Recorder::recording() const {
  Recording made = totals();
  made.events = events_of(run_);
  for (Event& event : made.events) {
    event.start -= std::min(event.start, began_);
    event.end -= std::min(event.end, began_);
  }
  made.threads = thread_names();
  made.op_titles = op_titles();
  return made;
}

std::vector<std::string> Recorder::op_titles() const {
  std::vector<std::string> titles(kOpsMax);
  for (std::size_t i = 0; i < kOpsMax; ++i)
    if (ops_[i].used.load(std::memory_order_acquire)) titles[i] = ops_[i].title;
  while (!titles.empty() && titles.back().empty()) titles.pop_back();
  return titles;
}

}  // namespace penstock::trace
