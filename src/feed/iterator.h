#pragma once
// The implementation of Iterator: its position, and the current run.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/pool.h"
#include "base/report.h"
#include "feed/compute_alone.h"
#include "feed/epoch_loop.h"
#include "feed/own_shares.h"
#include "order/cut.h"
#include "penstock/loader.h"
#include "report/run_report.h"
#include "report/run_writer.h"
#include "report/status.h"
#include "run/pass.h"

namespace penstock {

/// 10 samples of a pass, or one in a thousand if that is more.
inline std::uint64_t default_skip_limit(const Plan& plan) {
  const auto samples = plan.samples();
  if (!samples || !samples->is_counted()) return 10;
  return std::max<std::uint64_t>(10, samples->count() / 1000);
}

class Iterator::Impl {
 public:
  Impl(Plan plan, LoaderOptions options, std::shared_ptr<LoaderWatch> watch)
      : plan_(std::move(plan)),
        watch_(std::move(watch)),
        loop_(watch_->loops),
        options_(std::move(options)),
        geometry_(plan_.data()->geometry),
        ledger_(options_.ledger_file, options_.skip_limit.value_or(default_skip_limit(plan_))) {
    const Hints hints = hints_of(*plan_.dataset().node());
    if (!options_.threads) options_.threads = hints.threads;
    if (!options_.lookahead_bytes) options_.lookahead_bytes = hints.lookahead_bytes;
    lookahead_steps_ = hints.prefetch_steps;
    name_ = hints.name;
  }
  ~Impl() {
    stop_run();
    watch_->loops.done(loop_.batches());
    if (const auto wrong = finish_sequences()) penstock::report(*wrong);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const LoaderOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<LoaderWatch>& watch() const { return watch_; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] std::vector<std::string> decisions() const {
    std::vector<std::string> lines;
    const std::shared_ptr<trace::Recorder> recorder = this->recorder();
    if (!recorder) return lines;
    for (trace::DecisionRecord& decision : recorder->decisions())
      lines.push_back(std::move(decision.text));
    return lines;
  }
  /// For a stream, blocks until the next step, or the end, is known.
  [[nodiscard]] bool at_end() {
    if (!streamed()) return step_ >= geometry_.steps();
    return !attempt([this] { return run_->has_next(); });
  }
  /// Of the current run, or the last one; null before the first.
  [[nodiscard]] std::shared_ptr<trace::Recorder> recorder() const {
    Lock lock(stop_mutex_);
    return running_ ? running_->recorder() : last_recorder_;
  }
  [[nodiscard]] Report report() const;

  std::optional<StepBatches> next() {
    resumed_ = false;
    const bool may_be_end = std::exchange(may_be_end_, false);
    std::optional<StepBatches> batches;
    if (streamed() || !at_end()) batches = attempt([this] { return run_->next(); });
    if (!batches) {
      go_to(epoch_ + 1, 0, plan_.data()->geometry);
      // The state was saved at the end before the end was known: this is the start of the next
      // epoch.
      if (may_be_end) return next();
      loop_.end_epoch();
      return std::nullopt;
    }
    return received(std::move(*batches));
  }

  std::optional<StepBatches> next_if_ready() {
    auto batches = run_ ? run_->next_if_ready() : std::nullopt;
    if (!batches) return std::nullopt;
    return received(std::move(*batches));
  }

  /// Training loops call this at the start of every epoch, also right after a restore.
  void set_epoch(std::uint64_t epoch) {
    if (!(resumed_ && epoch == epoch_)) go_to(epoch, 0, plan_.data()->geometry);
    loop_.move();
  }
  /// A `for` over the rest of the epoch, or over the next one.
  void begin_loop() {
    if (loop_.begin()) set_epoch(epoch_ + 1);
    loop_.enter();
  }

  [[nodiscard]] State state();
  void restore(const State& state) {
    go_to_place_of(state);
    loop_.move();
    resumed_ = true;
    may_be_end_ = state.stream && state.stream->next.empty();
  }

  [[nodiscard]] StepBatches replay(std::uint64_t step) {
    if (streamed()) return replay_stream(step);
    if (step >= geometry_.steps())
      throw ConfigError(fmt::format("step {} of an epoch of {} steps", step, geometry_.steps()),
                        here());
    if (step < geometry_.first_known())
      throw ConfigError(
          fmt::format(
              "step {}: the batch sizes of the steps before {} are no longer known, after {} "
              "changes of the batch size in this epoch",
              step, geometry_.first_known(), Geometry::kSegmentsMax),
          here(), "use a loader that has not been restored");
    SequenceBatch batch;
    const Place place = asked_place(*plan_.data(), geometry_.step(epoch_, step), batch);
    return compute_shares(step, place, batch.view.spec != nullptr ? &batch.view : nullptr);
  }

  void stop() {
    std::shared_ptr<Pass> run;
    std::shared_ptr<Pool> pool;
    {
      Lock lock(stop_mutex_);
      run = running_;
      pool = running_pool_;
    }
    if (run) run->stop(pool.get());
    // A stuck Sequence cannot be called again.
    if (Pool::abandoned() > 0) stuck_ = true;
    if (const auto wrong = pure_sequences() ? finish_sequences() : std::nullopt)
      throw ConfigError(*wrong, here());
  }

 private:
  void go_to_place_of(const State& state);
  StepBatches received(StepBatches batches) {
    step_ = run_->delivered();
    loop_.took_batch();
    return batches;
  }
  /// The run, for threads other than the consumer.
  [[nodiscard]] std::shared_ptr<Pass> running() const {
    Lock lock(stop_mutex_);
    return running_;
  }
  [[nodiscard]] Where here() const {
    Where where;
    where.dataset = name_;
    return where;
  }

  [[nodiscard]] bool streamed() const { return plan_.dataset().streamed(); }
  /// True if the position counts samples and a state loads with any batch size.
  [[nodiscard]] bool counts_samples() const {
    return streamed() ? batch_size_is_free(*plan_.dataset().node()) : geometry_.elastic();
  }

  /// With a single share nothing waits for an empty one.
  [[nodiscard]] bool refuses_empty() const {
    return options_.empty == Empty::refuse && plan_.shares().total > 1;
  }

  [[nodiscard]] bool pure_sequences() const {
    const auto& chains = plan_.data()->program.chains;
    return std::ranges::any_of(chains, [](const LeafProgram& chain) {
      return chain.sequence && chain.sequence->options().pure;
    });
  }
  /// If nothing failed, requests one index of each Sequence again; returns an error text if the
  /// result differs.
  std::optional<std::string> finish_sequences() {
    std::optional<std::string> wrong;
    if (!entered_ || failed_ || stuck_) return wrong;
    entered_ = false;
    for (const LeafProgram& chain : plan_.data()->program.chains) {
      if (!chain.sequence) continue;
      try {
        if (auto told = chain.sequence->finish()) wrong = std::move(told);
      } catch (const std::exception& error) {  // of a hook
        wrong = fmt::format("{}: on_epoch_end threw: {}", chain.sequence->title(), error.what());
      }
    }
    return wrong;
  }

  /// Calls `body` with an active run. An exception ends the run: the step was not delivered, and
  /// the next call computes it again.
  template <typename Body>
  std::invoke_result_t<Body&> attempt(Body body) {
    try {
      if (run_ && run_->stopped()) stop_run();
      if (!run_) start_run();
      return body();
    } catch (Error&) {
      failed_ = true;
      stop_run();
      throw;
    }
  }

  StepBatches compute_shares(std::uint64_t step, const Place& place, const BlockView* pulled) {
    const ElementSpec spec = spec_for(place, pulled);
    StepBatches batches;
    for_each_share(place, [&](std::uint32_t share, const Cut& cut) {
      const ShareFacts facts{epoch_,          step,     share,      plan_.shares().total,
                             cut.size(share), cut.rows, cut.slots()};
      batches.emplace_back(
          compute_alone(*plan_.data(), {place, cut.first(share), facts, pulled}, spec));
    });
    return batches;
  }

  StepBatches replay_stream(std::uint64_t step);

  template <typename Body>
  void for_each_share(const Place& place, Body body) const {
    const Shares& shares = plan_.shares();
    const Cut cut = cut_of(place, shares.total);
    for (std::uint32_t share = shares.first; share < shares.first + shares.count; ++share)
      body(share, cut);
  }

  ElementSpec spec_for(const Place& place, const BlockView* pulled) {
    if (plan_.data()->program.spec.known) return plan_.data()->program.spec;
    if (shape_.layout && !shape_.layout->spec.fields.empty()) return shape_.layout->spec;
    if (place.count == 0) return ElementSpec::none();
    // The first local row, or one of another share: every share has the same fields.
    const std::uint64_t row = cut_of(place, plan_.shares().total).first(plan_.shares().first);
    return ElementSpec::of(compute_row(*plan_.data(), place, row < place.count ? row : 0, pulled));
  }

  void start_run();

  void stop_run() {
    if (!run_) return;
    {
      Lock lock(stop_mutex_);
      running_.reset();
      running_pool_.reset();
      last_recorder_ = run_->recorder();
    }
    shape_ = run_->shape();
    // Until a step is delivered, the row recorded in the state must still follow.
    if (StreamPlace reached = run_->stream_place(); reached.anchor != stream_.anchor) {
      stream_ = std::move(reached);
      stream_.next.clear();
    }
    run_->recorder()->left();
    run_->stop(pool_.get());
    run_.reset();
    writer_.reset();
  }
  void start_writer(const std::shared_ptr<trace::Recorder>& recorder);

  void go_to(std::uint64_t epoch, std::uint64_t step, Geometry geometry, StreamPlace stream = {}) {
    stop_run();
    resumed_ = may_be_end_ = false;
    epoch_ = epoch;
    step_ = first_step_ = step;
    geometry_ = std::move(geometry);
    stream_ = first_place_ = std::move(stream);
  }

  Plan plan_;
  std::shared_ptr<LoaderWatch> watch_;
  EpochLoop loop_;
  bool entered_ = false;  // hooks of Sequences were called
  bool failed_ = false;
  std::atomic<bool> stuck_ = false;
  LoaderOptions options_;
  std::string name_;
  std::uint64_t lookahead_steps_ = 0;
  std::atomic<std::uint64_t> epoch_ = 0;  // read by other threads
  std::uint64_t step_ = 0;
  bool resumed_ = false;     // a state was restored, and nothing was requested since
  bool may_be_end_ = false;  // likewise, and the state does not say whether an element follows
  Geometry geometry_;        // of this epoch
  StreamPlace stream_;       // of a stream: where the next run starts
  // Where this epoch was entered: 0, or the position of a state.
  std::uint64_t first_step_ = 0;
  StreamPlace first_place_;
  Ledger ledger_;
  BatchShape shape_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<ReadPace> pace_ = std::make_shared<ReadPace>();
  std::shared_ptr<Pass> run_;

  mutable Mutex stop_mutex_;  // `stop` and reports are called from any thread, with their own
                              // handles
  std::shared_ptr<Pass> running_ PENSTOCK_GUARDED_BY(stop_mutex_);
  std::shared_ptr<Pool> running_pool_ PENSTOCK_GUARDED_BY(stop_mutex_);
  std::unique_ptr<RunWriter> writer_;     // with `report_dir`
  std::shared_ptr<StatusWriter> status_;  // with PENSTOCK_STATUS
  std::shared_ptr<trace::Recorder> last_recorder_ PENSTOCK_GUARDED_BY(stop_mutex_);
  std::optional<Plan> started_plan_ PENSTOCK_GUARDED_BY(stop_mutex_);  // of the newest run
};

}  // namespace penstock
