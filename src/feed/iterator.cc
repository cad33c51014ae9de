// tested in src/feed/loader_test.cc
#include "feed/iterator.h"

#include "base/fault.h"
#include "plan/plan_data.h"
#include "report/run_report.h"

namespace penstock {

StepBatches Iterator::Impl::replay_stream(std::uint64_t step) {
  // `first_step_` is where this epoch was entered; earlier steps may have had another batch size.
  if (step < first_step_)
    throw ConfigError(fmt::format("step {} came before the state that was restored at step {}",
                                  step, first_step_),
                      here(), "use a loader that has not been restored");
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

namespace {

/// What reports show besides the recorder's figures.
void add_facts(trace::Recording& recording, const Ledger& ledger) {
  recording.bytes_limit = ByteBudget::process().limit();
  constexpr std::size_t kSkippedMax = 100;
  for (const LedgerEntry& entry : ledger.entries()) {
    if (entry.epoch != recording.facts.epoch) continue;
    if (recording.skipped_samples.size() == kSkippedMax) break;
    recording.skipped_samples.push_back(fmt::format(
        "step {}: sample {} of source {}{}: {}", entry.step, entry.sample.number,
        entry.sample.source, entry.file.empty() ? "" : ", " + entry.file, entry.reason));
  }
}

}  // namespace

void Iterator::Impl::start_run() {
  watch_->shares.epoch_begins();
  for (const LeafProgram& chain : plan_.data()->program.chains)
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
  const std::uint64_t largest = largest_step_of(*plan_.data());
  if (pool_) settings.pool_threads = pool_->threads();
  settings.shape = {Cut{largest, plan_.shares().total}.size(0), plan_.shares().count,
                    options_.allocator};
  // If the epoch had no sample to learn the shape from, the next epoch learns it again.
  if (shape_.layout && shape_.layout->spec.fields.empty()) shape_ = {};
  if (!shape_.layout && plan_.data()->program.spec.known)
    shape_ = make_batch_shape(plan_.data()->program.spec, settings.shape);
  auto run = std::make_shared<Pass>(plan_.data(), shape_,
                                    RunStart{epoch_, step_, geometry_, stream_}, settings);
  if (!options_.report_dir.empty()) start_writer(run->recorder());
  status_ = StatusWriter::shared();
  run_ = std::move(run);
  {
    Lock lock(stop_mutex_);
    running_ = run_;
    running_pool_ = pool_;
    started_plan_ = plan_;
  }
  if (settings.threads > 0) Pass::start(run_, *pool_);
}

Report Iterator::Impl::report() const {
  const std::shared_ptr<trace::Recorder> recorder = this->recorder();
  auto recording = std::make_shared<trace::Recording>();
  if (recorder) *recording = recorder->recording();
  std::optional<Plan> plan;
  {
    Lock lock(stop_mutex_);
    plan = started_plan_;
  }
  if (plan) recording->plan = plan->explain();
  add_facts(*recording, ledger_);
  return report_of(std::move(recording));
}

void Iterator::Impl::start_writer(const std::shared_ptr<trace::Recorder>& recorder) {
  RunWriter::Options options;
  options.path = trace_path(options_.report_dir, recorder->facts());
  options.complete = [this, plan = plan_.explain()](trace::Recording& recording) {
    recording.plan = plan;
    add_facts(recording, ledger_);
  };
  writer_ = std::make_unique<RunWriter>(recorder, std::move(options));
}

Iterator::Iterator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Iterator::Iterator(Iterator&&) noexcept = default;
Iterator& Iterator::operator=(Iterator&&) noexcept = default;
Iterator::~Iterator() = default;

std::optional<Batch> Iterator::next() {
  if (impl_->plan().shares().count != 1)
    throw ConfigError(
        fmt::format("next() returns one batch, but this loader serves {} shares of a step",
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
Report Iterator::report() const {
  return impl_->report();
}
std::shared_ptr<trace::Recorder> Iterator::recorder() const {
  return impl_->recorder();
}
std::uint32_t Iterator::trace_run() const {
  const auto recorder = impl_->recorder();
  return recorder ? recorder->run() : 0;
}

}  // namespace penstock
