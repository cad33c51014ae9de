#include "penstock/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "base/fault.h"
#include "base/pool.h"
#include "base/report.h"
#include "feed/once.h"
#include "feed/one_batch.h"
#include "feed/own_shares.h"
#include "feed/state_parts.h"
#include "graph/tail.h"
#include "order/cut.h"
#include "plan/empty.h"
#include "run/pass_run.h"

namespace penstock {
namespace {

/// 10 samples of a pass, or one in a thousand where that is more.
std::uint64_t default_skip_limit(const Plan& plan) {
  const auto samples = plan.samples();
  if (!samples || !samples->is_counted()) return 10;
  return std::max<std::uint64_t>(10, samples->count() / 1000);
}

}  // namespace

class Iterator::Impl {
 public:
  Impl(Plan plan, LoaderOptions options, std::shared_ptr<LoaderWatch> watch)
      : plan_(std::move(plan)),
        watch_(std::move(watch)),
        options_(std::move(options)),
        geometry_(plan_.data()->geometry),
        ledger_(options_.ledger_file, options_.skip_limit.value_or(default_skip_limit(plan_))) {
    const Wishes wishes = wishes_of(*plan_.dataset().node());
    if (!options_.threads) options_.threads = wishes.threads;
    if (!options_.lookahead_bytes) options_.lookahead_bytes = wishes.lookahead_bytes;
    lookahead_steps_ = wishes.prefetch_steps;
    name_ = wishes.name;
  }
  ~Impl() {
    stop_run();
    watch_->loops.done(batches_);
    if (const auto wrong = finish_sequences()) report(*wrong);
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
    const std::shared_ptr<PassRun> run = running();
    if (!run) return lines;
    for (const Pacing::Decision& decision : run->decisions())
      lines.push_back(fmt::format("{} steps ahead, {} rows a task: {}", decision.window,
                                  decision.task_rows, decision.reason));
    return lines;
  }
  /// Of a stream, waits until the next step, or that there is none, is known.
  [[nodiscard]] bool at_end() {
    if (!streamed()) return step_ >= geometry_.steps();
    return !attempt([this] { return run_->has_next(); });
  }
  [[nodiscard]] std::uint32_t trace_run() const {
    Lock lock(stop_mutex_);
    return running_ ? running_->trace_run() : last_trace_run_;
  }

  std::optional<StepBatches> next() {
    resumed_ = false;
    std::optional<StepBatches> batches;
    if (streamed() || !at_end()) batches = attempt([this] { return run_->next(); });
    // Without the promise the end is a step, the last one once more.
    if (PENSTOCK_OFF("stream.end") && !batches && streamed() && step_ == run_->delivered())
      return replay(step_++ - 1);
    if (!batches && PENSTOCK_OFF("epoch.fresh")) return std::nullopt;
    if (!batches) {
      go_to(epoch_ + 1, 0, plan_.data()->geometry);
      return std::nullopt;
    }
    return received(std::move(*batches));
  }

  std::optional<StepBatches> next_if_ready() {
    auto batches = run_ ? run_->next_if_ready() : std::nullopt;
    if (!batches) return std::nullopt;
    return received(std::move(*batches));
  }

  /// Training loops call it at the top of every epoch, also right after a restore.
  void set_epoch(std::uint64_t epoch) {
    if (!(resumed_ && epoch == epoch_)) go_to(epoch, 0, plan_.data()->geometry);
  }

  [[nodiscard]] State state();
  void restore(const State& state) {
    go_to_place_of(state);
    resumed_ = true;
  }

  [[nodiscard]] StepBatches replay(std::uint64_t step) {
    if (streamed()) return replay_stream(step);
    if (step >= geometry_.steps())
      throw ConfigError(fmt::format("step {} of an epoch of {} steps", step, geometry_.steps()),
                        here());
    SequenceBatch batch;
    const Place place = asked_place(*plan_.data(), geometry_.step(epoch_, step), batch);
    return compute_shares(step, place, batch.view.spec != nullptr ? &batch.view : nullptr);
  }

  void stop() {
    std::shared_ptr<PassRun> run;
    std::shared_ptr<Pool> pool;
    {
      Lock lock(stop_mutex_);
      run = running_;
      pool = running_pool_;
    }
    if (run) run->stop(pool.get());
    // A Sequence that is stuck cannot be asked once more.
    if (Pool::abandoned() > 0) stuck_ = true;
    if (const auto wrong = pure_sequences() ? finish_sequences() : std::nullopt)
      throw ConfigError(*wrong, here());
  }

 private:
  void go_to_place_of(const State& state);
  StepBatches received(StepBatches batches) {
    step_ = run_->delivered();
    ++batches_;
    return batches;
  }
  /// The run, for threads other than the one that consumes.
  [[nodiscard]] std::shared_ptr<PassRun> running() const {
    Lock lock(stop_mutex_);
    return running_;
  }
  [[nodiscard]] Where here() const {
    Where where;
    where.dataset = name_;
    return where;
  }

  [[nodiscard]] bool streamed() const { return plan_.dataset().streamed(); }
  /// True when the position counts samples and a state loads at any batch size.
  [[nodiscard]] bool counts_samples() const {
    return streamed() ? batch_size_is_free(*plan_.dataset().node()) : geometry_.elastic();
  }

  /// Of one share only there is nobody to wait for it.
  [[nodiscard]] bool refuses_empty() const {
    return options_.empty == Empty::refuse && plan_.shares().total > 1;
  }

  [[nodiscard]] bool pure_sequences() const {
    const auto& chains = plan_.data()->program.chains;
    return std::ranges::any_of(chains, [](const Chain& chain) {
      return chain.sequence && chain.sequence->options().pure;
    });
  }
  /// Where all went well, asks each Sequence once more; what is wrong with the answer.
  std::optional<std::string> finish_sequences() {
    std::optional<std::string> wrong;
    if (!entered_ || failed_ || stuck_) return wrong;
    entered_ = false;
    for (const Chain& chain : plan_.data()->program.chains) {
      if (!chain.sequence) continue;
      try {
        if (auto told = chain.sequence->finish()) wrong = std::move(told);
      } catch (const std::exception& error) {  // a hook's
        wrong = fmt::format("{}: on_epoch_end threw: {}", chain.sequence->title(), error.what());
      }
    }
    return wrong;
  }

  /// `body` with a run that is under way. What it throws ends the run: the step was not delivered,
  /// and the next call computes it again.
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
          compute_once(*plan_.data(), {place, cut.first(share), facts, pulled}, spec));
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
    if (mold_.layout && !mold_.layout->spec.fields.empty()) return mold_.layout->spec;
    ElementSpec spec = ElementSpec::none();
    for_each_share(place, [&](std::uint32_t share, const Cut& cut) {
      if (spec.fields.empty() && cut.size(share) > 0)
        spec = ElementSpec::of(compute_row(*plan_.data(), place, cut.first(share), pulled));
    });
    return spec;
  }

  void start_run();

  void stop_run() {
    if (!run_) return;
    {
      Lock lock(stop_mutex_);
      running_.reset();
      running_pool_.reset();
      last_trace_run_ = run_->trace_run();
    }
    mold_ = run_->mold();
    // As long as nothing was delivered, what a state promised is still to come.
    if (StreamPlace reached = run_->stream_place(); reached.anchor != stream_.anchor) {
      stream_ = std::move(reached);
      stream_.next.clear();
    }
    run_->stop(pool_.get());
    run_.reset();
  }

  void go_to(std::uint64_t epoch, std::uint64_t step, Geometry geometry, StreamPlace stream = {}) {
    stop_run();
    resumed_ = false;
    epoch_ = epoch;
    step_ = first_step_ = step;
    geometry_ = std::move(geometry);
    stream_ = first_place_ = std::move(stream);
  }

  Plan plan_;
  std::shared_ptr<LoaderWatch> watch_;
  std::uint64_t batches_ = 0;  // given in all
  bool entered_ = false;       // hooks of Sequences were called
  bool failed_ = false;
  std::atomic<bool> stuck_ = false;
  LoaderOptions options_;
  std::string name_;
  std::uint64_t lookahead_steps_ = 0;
  std::atomic<std::uint64_t> epoch_ = 0;  // other threads may ask for it
  std::uint64_t step_ = 0;
  bool resumed_ = false;  // a state was restored, and nothing was asked for since
  Geometry geometry_;     // of this epoch
  StreamPlace stream_;    // of a stream: where the next run begins
  // Where this epoch was entered: 0, or where a state was saved.
  std::uint64_t first_step_ = 0;
  StreamPlace first_place_;
  Ledger ledger_;
  Mold mold_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<ReadPace> pace_ = std::make_shared<ReadPace>();
  std::shared_ptr<PassRun> run_;

  mutable Mutex stop_mutex_;  // `stop` and reports come from any thread, with handles of their own
  std::shared_ptr<PassRun> running_ PENSTOCK_GUARDED_BY(stop_mutex_);
  std::shared_ptr<Pool> running_pool_ PENSTOCK_GUARDED_BY(stop_mutex_);
  std::uint32_t last_trace_run_ PENSTOCK_GUARDED_BY(stop_mutex_) = 0;
};

StepBatches Iterator::Impl::replay_stream(std::uint64_t step) {
  // From where this epoch was entered; an earlier step may have had another batch size.
  if (step < first_step_)
    throw ConfigError(fmt::format("step {} came before the state that was restored at step {}",
                                  step, first_step_),
                      here(), "ask a loader that has not been restored");
  Scratch scratch;
  Pulling pulling{scratch};
  StreamPlace from = first_place_;
  from.next.clear();
  Sequencer sequencer(plan_.data(), epoch_, std::move(from));
  PulledStep pulled;
  for (std::uint64_t at = first_step_; at <= step; ++at) {
    Anchor after;
    auto more = sequencer.pull(pulled, after, pulling);
    if (!more) more.failure().raise();
    if (!*more) throw ConfigError(fmt::format("step {} of an epoch of {} steps", step, at), here());
  }
  const BlockView rows = pulled.buffer->rows(0, pulled.rows);
  return compute_shares(step, place_of(pulled), &rows);
}

void Iterator::Impl::start_run() {
  watch_->shares.epoch_begins();
  for (const Chain& chain : plan_.data()->program.chains)
    if (chain.sequence) chain.sequence->enter_epoch(epoch_);
  entered_ = true;
  RunSettings settings;
  settings.dataset = name_;
  settings.clock = options_.clock;
  settings.io = options_.io;
  settings.pace = pace_;
  settings.stall_after = options_.stall_after;
  settings.stall_is_error = options_.stall_is_error;
  settings.while_waiting = options_.while_waiting;
  if (options_.on_error == OnError::skip) settings.ledger = &ledger_;
  settings.lookahead_steps = lookahead_steps_;
  settings.no_empty_share = refuses_empty();
  settings.lookahead_bytes = options_.lookahead_bytes.value_or(ByteBudget::process().limit());
  if (options_.threads.value_or(1) > 0 && !PENSTOCK_OFF("run.ahead")) {
    if (!pool_) pool_ = Pool::shared();
    settings.threads = std::min(options_.threads.value_or(pool_->threads()), pool_->threads());
  }
  settings.mold = {Cut{plan_.batch_samples(), plan_.shares().total}.size(0), plan_.shares().count,
                   options_.allocator};
  // An epoch in which there was nothing to learn from leaves no fields; the next one looks again.
  if (mold_.layout && mold_.layout->spec.fields.empty()) mold_ = {};
  if (!mold_.layout && plan_.data()->program.spec.known)
    mold_ = make_mold(plan_.data()->program.spec, settings.mold);
  run_ = std::make_shared<PassRun>(plan_.data(), mold_, RunStart{epoch_, step_, geometry_, stream_},
                                   settings);
  {
    Lock lock(stop_mutex_);
    running_ = run_;
    running_pool_ = pool_;
  }
  if (settings.threads > 0) PassRun::start(run_, *pool_);
}

State Iterator::Impl::state() {
  State state;
  state.epoch = epoch_;
  state.step = step_;
  state.counts_samples = counts_samples();
  StreamPlace place = stream_;
  bool ended = false;
  if (streamed() && step_ > 0) {
    // Without a run (it was stopped) nothing is known of what follows.
    ended = run_ && !run_->stopped() && at_end();
    if (run_) place = run_->stream_place();
    state.position = counts_samples() ? place.position : step_;
  } else if (step_ > 0) {
    ended = at_end();
    state.position = geometry_.position(step_);
  }
  if (ended) {  // what follows the last batch is the start of the next epoch
    state.epoch = epoch_ + 1;
    state.step = state.position = 0;
  } else if (streamed()) {
    if (step_ > 0) state.stream = stream_state(place);
  } else if (geometry_.elastic() && step_ > 0) {
    for (const Segment& segment : geometry_.segments())
      state.sizes.push_back({segment.step, segment.position, segment.batch, tail_of(segment.tail)});
  }
  if (wants_drawn_seed(*plan_.dataset().node())) state.drawn_seed = plan_.data()->drawn_seed;
  state.digests = plan_.digests();
  state.order = order_parts(*plan_.dataset().node(), plan_.data()->options.tail);
  check_size(state);
  return state;
}

void Iterator::Impl::go_to_place_of(const State& state) {
  const Digests ours = plan_.digests();
  if (state.digests.order != ours.order)
    throw StateError(
        fmt::format("the state is of another dataset: {}",
                    order_difference(state.order, order_parts(*plan_.dataset().node(),
                                                              plan_.data()->options.tail))),
        here(), "build the dataset as it was when the state was saved");
  if (state.digests.values != ours.values)
    report(
        "restore: the order of samples is the same, but functions, ops or the library changed "
        "since the state was saved");
  if (state.drawn_seed && *state.drawn_seed != plan_.data()->drawn_seed) {
    PlanOptions options = plan_.data()->options;
    options.drawn_seed = state.drawn_seed;
    stop_run();
    plan_ = Plan(plan_.dataset(), options);
  }
  const Geometry& fresh = plan_.data()->geometry;
  if (PENSTOCK_OFF("state.position")) return go_to(state.epoch, 0, fresh);
  const auto refuse = [&](const std::string& why) {
    throw StateError(fmt::format("the state does not fit: {}", why), here());
  };
  if (state.counts_samples != counts_samples()) refuse("it counts in another unit");
  if (state.step == 0 && state.position != 0) refuse("a position without a step");
  if (streamed()) {
    if (state.step > 0 && !state.stream) refuse("it is of a stream and has no anchor");
    StreamPlace place;
    if (state.stream)
      place = {Anchor{state.stream->numbers, state.stream->texts}, state.position,
               state.stream->next, state.stream->batch};
    return go_to(state.epoch, state.step, fresh, std::move(place));
  }
  if (!fresh.elastic()) {
    if (state.step != state.position) refuse("step and position differ");
    if (state.step > fresh.steps()) refuse(fmt::format("step {} of {}", state.step, fresh.steps()));
    return go_to(state.epoch, state.step, fresh);
  }
  if (state.position > fresh.span())
    refuse(fmt::format("position {} of {} samples", state.position, fresh.span()));
  if (state.step == 0) return go_to(state.epoch, 0, fresh);
  if (state.sizes.empty() || state.sizes.front().step != 0 || state.sizes.front().position != 0)
    refuse("its batch sizes do not start at the start");
  const std::uint64_t batch = plan_.batch_samples();
  Geometry resumed(plan_.data()->program.steps, segments_of(state),
                   {state.step, state.position, batch});
  if (const Groups rest = resumed.rest_of_round(); rest.tail == TailRule::strict && !rest.divides())
    refuse(
        fmt::format("tail=strict, and batches of {} do not divide the {} samples that are left; "
                    "go on with a batch size that does, or with tail=short",
                    rest.batch, rest.count));
  if (const std::uint64_t fewest = resumed.fewest();
      refuses_empty() && fewest < plan_.shares().total)
    refuse(
        fmt::format("{} of {} shares have no sample in a step of {} of what is left; go on with "
                    "another batch size, with tail=pad, or with empty=deliver",
                    plan_.shares().total - fewest, plan_.shares().total, fewest));
  go_to(state.epoch, state.step, std::move(resumed));
}

Iterator::Iterator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Iterator::Iterator(Iterator&&) noexcept = default;
Iterator& Iterator::operator=(Iterator&&) noexcept = default;
Iterator::~Iterator() = default;

std::optional<Batch> Iterator::next() {
  if (impl_->plan().shares().count != 1)
    throw ConfigError(fmt::format("next() gives one batch, this loader serves {} shares of a step",
                                  impl_->plan().shares().count),
                      {}, "use next_step()");
  auto batches = impl_->next();
  if (!batches) return std::nullopt;
  return std::move(batches->front());
}
std::optional<Batch> Iterator::next_if_ready() {
  if (impl_->plan().shares().count != 1) return std::nullopt;
  auto batches = impl_->next_if_ready();
  return batches ? std::optional(std::move(batches->front())) : std::nullopt;
}
std::optional<std::vector<Batch>> Iterator::next_step() {
  return impl_->next();
}
bool Iterator::at_end() const {
  return impl_->at_end();
}
std::uint64_t Iterator::epoch() const {
  return impl_->epoch();
}
void Iterator::set_epoch(std::uint64_t epoch) {
  impl_->set_epoch(epoch);
}
State Iterator::state() const {
  return impl_->state();
}
void Iterator::restore(const State& state) {
  impl_->restore(state);
}
std::vector<Batch> Iterator::replay(std::uint64_t step) const {
  return impl_->replay(step);
}
void Iterator::stop() {
  impl_->stop();
}
const Ledger& Iterator::ledger() const {
  return impl_->ledger();
}
std::vector<std::string> Iterator::decisions() const {
  return impl_->decisions();
}
std::uint32_t Iterator::trace_run() const {
  return impl_->trace_run();
}

Loader::Loader(const Dataset& dataset, const LoaderOptions& options)
    : Loader(plan_for(dataset, options), without_plan(options)) {
  if (const auto world = own_world(options))
    own_->impl_->watch()->shares.announce(own_shares_text(plan(), *world));
}

Loader::Loader(const Plan& plan, const LoaderOptions& options) {
  if (options.shares || options.tail)
    throw ConfigError(fmt::format("loader: {} was set beside a plan, which has its own",
                                  options.shares ? "shares" : "tail"),
                      {}, "leave it out, or make the plan with it");
  if (options.empty == Empty::refuse) refuse_empty_shares(*plan.data());
  own_.reset(new Iterator(
      std::make_unique<Iterator::Impl>(plan, options, std::make_shared<LoaderWatch>())));
  for (const std::string& warning : plan.data()->program.warnings) report(warning);
}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

const Plan& Loader::plan() const {
  return own_->impl_->plan();
}
std::uint64_t Loader::size() const {
  return plan().steps().count();
}
Iterator Loader::iterate() const {
  return Iterator(
      std::make_unique<Iterator::Impl>(plan(), own_->impl_->options(), own_->impl_->watch()));
}
std::optional<Batch> Loader::next() {
  return own_->next();
}
std::optional<std::vector<Batch>> Loader::next_step() {
  return own_->next_step();
}
bool Loader::at_end() const {
  return own_->at_end();
}
std::uint64_t Loader::epoch() const {
  return own_->epoch();
}
void Loader::set_epoch(std::uint64_t epoch) {
  in_loop_ = false;
  own_->set_epoch(epoch);
}
State Loader::state() const {
  return own_->state();
}
void Loader::restore(const State& state) {
  in_loop_ = false;
  own_->restore(state);
}
Batch Loader::step(std::uint64_t step) const {
  auto batches = own_->replay(step);
  if (batches.size() != 1)
    throw ConfigError(
        fmt::format("step() gives one batch, this loader serves {} shares", batches.size()), {},
        "use iterate().replay(step)");
  return std::move(batches.front());
}
void Loader::stop() {
  own_->stop();
}
std::uint32_t Loader::trace_run() const {
  return own_->trace_run();
}

Loader::EpochIterator Loader::begin() {
  if (in_loop_) {
    own_->impl_->watch()->loops.done(loop_batches_);
    own_->set_epoch(own_->epoch() + 1);
  }
  in_loop_ = true;
  loop_batches_ = 0;
  return EpochIterator(this);
}

}  // namespace penstock
