#include "run/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/cancel_scope.h"
#include "base/printable.h"
#include "base/report.h"
#include "order/cut.h"

namespace penstock {
namespace {

WindowSettings window_settings(const PlanData& plan, const RunStart& start,
                               const RunSettings& settings) {
  WindowSettings made;
  made.threads = settings.threads;
  made.first = start.step;
  made.stream = plan.program.stream != nullptr;
  made.end = made.stream ? kEndless : start.geometry.steps();
  made.step = {start.pass, plan.options.shares, settings.ledger != nullptr, plan.program.masks,
               settings.no_empty_share};
  return made;
}

trace::RunFacts run_facts(const PlanData& plan, const RunStart& start,
                          const RunSettings& settings) {
  trace::RunFacts facts;
  facts.dataset = settings.dataset;
  facts.epoch = start.pass;
  facts.first_step = start.step;
  facts.stream = plan.program.stream != nullptr;
  if (!facts.stream && start.geometry.steps() != kEndless) facts.end_step = start.geometry.steps();
  facts.step_rows = settings.shape.rows_max * settings.shape.shares;
  facts.shares = plan.options.shares.count;
  facts.first_share = plan.options.shares.first;
  facts.shares_total = plan.options.shares.total;
  facts.threads = settings.threads;
  facts.pool_threads = settings.pool_threads;
  facts.cores = usable_cores();
  facts.bytes_max = settings.lookahead_bytes;
  facts.ops = plan.program.ops;
  return facts;
}

trace::NameSample name_sample(std::shared_ptr<const PlanData> plan) {
  return [plan = std::move(plan)](std::uint64_t id) -> trace::SampleName {
    const LeafProgram* of = nullptr;
    for (const LeafProgram& chain : plan->program.chains)
      if (chain.samples && (of == nullptr || chain.first_id <= id)) of = &chain;
    if (of == nullptr) return {};
    const SampleKey key = of->samples->ids().key(id);
    return {fmt::format("{} of source {}", key.number, key.source), of->samples->ids().file_of(id)};
  };
}

}  // namespace

Pass::Pass(std::shared_ptr<const PlanData> plan, BatchShape shape, RunStart start,
           const RunSettings& settings)
    : plan_(std::move(plan)),
      start_(std::move(start)),
      settings_(settings),
      clock_(settings.clock != nullptr ? *settings.clock : Clock::real()),
      recorder_(std::make_shared<trace::Recorder>(run_facts(*plan_, start_, settings_), clock_,
                                                  name_sample(plan_))),
      learner_(plan_, {settings.dataset, start_.pass, settings.ledger != nullptr, settings.shape}),
      fetcher_({settings.io != nullptr ? settings.io : &Io::real(), &clock_,
                settings.pace ? settings.pace : std::make_shared<ReadPace>(),
                &ByteBudget::process(), settings.lookahead_bytes, recorder_}),
      worker_(plan_, start_, settings_, learner_, fetcher_, clock_, *recorder_),
      puller_(plan_,
              {start_.pass, start_.step, start_.stream, settings.threads,
               settings.ledger != nullptr, [this] { window_.wake(); }},
              clock_),
      window_(
          [this] {
            WindowSettings made = window_settings(*plan_, start_, settings_);
            made.wants_help = [this] { return puller_.wants_help(); };
            made.decided = [this](std::string text) { recorder_->decided(std::move(text)); };
            return made;
          }(),
          worker_, clock_),
      consumer_(
          plan_, start_, settings_, window_, [this] { return run_one(); }, clock_, *recorder_) {
  trace::add_live_run(recorder_);
  if (shape.layout) set_shape(std::move(shape));
}

Pass::~Pass() = default;

void Pass::set_shape(BatchShape shape) {
  const std::uint32_t shares = plan_->options.shares.count;
  const Pacing::Limits limits{
      .threads = settings_.threads,
      .step_rows = std::max<std::uint64_t>(1, settings_.shape.rows_max * settings_.shape.shares),
      .step_bytes = shape.layout->bytes * settings_.shape.shares,
      .bytes_max = settings_.lookahead_bytes,
      .steps_wished = settings_.lookahead_steps,
      .rows_at_once = plan_->program.rows_at_once};
  const std::uint64_t step_rows = shape.layout->rows_max * shares;
  worker_.set_shape(std::move(shape));
  window_.begin(limits, step_rows);
}

void Pass::start(const std::shared_ptr<Pass>& self, Pool& pool) {
  if (self->settings_.threads == 0) return;
  self->window_.attach(&pool);
  try {
    pool.attach(self, self->settings_.threads, {.while_waiting = self->settings_.while_waiting});
  } catch (...) {
    self->stop(nullptr);  // no thread works on this pass: a retry must start another
    throw;
  }
}

void Pass::stop(Pool* pool) {
  consumer_.stop();
  window_.stop();
  fetcher_.cancel();
  if (pool == nullptr) return;
  constexpr auto kPatience = std::chrono::milliseconds(500);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  if (const unsigned stuck = pool->detach(*this, kPatience); stuck > 0) report_abandoned(stuck);
  if (const auto stuck = fetcher_.stop(until - std::chrono::steady_clock::now()); !stuck.empty()) {
    std::string text =
        stuck.size() == 1 ? "1 read did not return and was abandoned"
                          : fmt::format("{} reads did not return and were abandoned", stuck.size());
    for (const std::string& file : stuck) text += fmt::format("\n  of {}", printable(file));
    report(text);
  }
}

void Pass::report_abandoned(unsigned threads) const {
  const auto lines = window_.inspect([&](const auto&, const auto& tasks) {
    return thread_lines(tasks, plan_->program, clock_.now());
  });
  report(abandoned_text(threads) + with_stacks(lines));
}

std::optional<StepBatches> Pass::next() {
  auto batches = consumer_.next();
  if (!batches) consumer_.write_ledger(delivered(), puller_.take_left_over());
  return batches;
}

std::uint64_t Pass::publish_kept() {
  // If no sample of the whole pass could be computed, the batches have no fields.
  if (!worker_.has_shape()) set_shape(learner_.without_fields());
  std::uint64_t rows = 0;
  for (auto& step : puller_.take_kept()) rows += window_.publish(std::move(step));
  return rows;
}

std::uint64_t Pass::pull_steps(Task& task, const Context& context) {
  constexpr Nanoseconds kLongEnough = std::chrono::microseconds(100);
  std::uint64_t rows = 0;
  while (true) {
    std::unique_ptr<StepInFlight> step = window_.spare_for(task, puller_.next_step());
    if (!puller_.pull(*step, context)) {
      rows += publish_kept();
      window_.end_stream();
      return rows;
    }
    const bool failed = step->ready();  // after an exception the stream cannot be pulled further
    puller_.keep(std::move(step));
    if (!failed && !worker_.has_shape())
      if (auto shape = learner_.learn_from_stream(puller_.last_kept(), context))
        set_shape(std::move(*shape));
    if (failed || worker_.has_shape()) rows += publish_kept();
    if (failed) window_.end_stream();
    // A single thread must also compute what it pulled.
    const bool enough = clock_.now() - task.began >= kLongEnough || settings_.threads < 2;
    if (!window_.pull_on() || enough) return rows;
  }
}

std::uint64_t Pass::run_task(Task& task) {
  const CancelScope scope(task.activity.cancelled);
  task.activity.recorded = {recorder_.get(), task.first_step};
  const ScratchStock::Loan loan(scratch_);
  const Context context(loan.scratch(), fetcher_, &task.activity);
  switch (task.kind) {
    case Task::Kind::rows:
      return worker_.work(task, context);
    case Task::Kind::pull:
      return pull_steps(task, context);
    case Task::Kind::learn:
      set_shape(learner_.learn(start_.geometry, start_.step, start_.geometry.steps(), context));
      return 0;
    case Task::Kind::help:
      puller_.help(context);
      return 0;
  }
  return 0;
}

bool Pass::run_one() {
  Task task;
  bool did = false;
  try {
    did = window_.begin_task(task);
    if (did) {
      const std::uint64_t rows = run_task(task);
      const auto kind = task.kind == Task::Kind::pull ? trace::Kind::pull : trace::Kind::block;
      recorder_->task_ended(kind, task.first_step, rows, task.began, clock_.now());
      window_.end_task(task, rows);
    }
  } catch (...) {
    window_.break_task(task, std::current_exception());
    did = false;
  }
  return did;
}

}  // namespace penstock
