// tested in train/tests/model_test.cc
#include "fitting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ATen/Parallel.h>

#include "base/report.h"
#include "history_json.h"
#include "named_values.h"

namespace penstock::train {
namespace {

/// A wait for input ends when the run is interrupted; the step can be requested again.
LoaderOptions interruptible(LoaderOptions options, const std::atomic<int>* interrupt) {
  if (interrupt == nullptr) return options;
  const auto before = options.while_waiting;
  options.while_waiting = [before, interrupt] {
    if (before) before();
    if (interrupt->load() != 0) throw CancelledError("fit: interrupted while waiting for input");
  };
  return options;
}

/// With several processes none may leave a step alone: they act on the interrupt together, after
/// the step.
const std::atomic<int>* interrupt_of(const FitOptions& options, const Mirrored& copies) {
  return copies.group() == nullptr ? options.interrupt : nullptr;
}

DistributeOptions distribution(const FitOptions& options, const Mirrored& copies) {
  DistributeOptions made;
  made.steps_per_epoch = options.steps_per_epoch;
  made.restart = options.restart;
  made.short_epoch = options.short_epoch;
  made.loader = interruptible(options.loader, interrupt_of(options, copies));
  return made;
}

void set_training(const Mirrored& copies, bool on) {
  for (std::size_t r = 0; r < copies.strategy().devices().size(); ++r)
    copies.copy(r).module().train(on);
}

}  // namespace

Fitting::Fitting(const ModelOptions& model, const CompileOptions& compiled, Mirrored& copies,
                 const Dataset& train, const FitOptions& options)
    : model_(model),
      compiled_(compiled),
      copies_(copies),
      options_(options),
      feed_(copies.strategy().distribute(train, distribution(options, copies))),
      progress_(options.show) {
  if (options.validation) {
    DistributeOptions plain;
    plain.loader = interruptible(options.loader, interrupt_of(options, copies));
    plain.loader.tail.reset();
    plain.loader.report_dir.clear();  // the traces of training stay the newest ones
    validation_.emplace(copies.strategy().distribute(*options.validation, plain));
  }
  if (options.initial_epoch > 0) feed_.set_epoch(options.initial_epoch);
  epoch_ = options.initial_epoch;
  if (!options.resume.empty()) restore();
}

bool Fitting::writes() const {
  return copies_.group() == nullptr || copies_.group()->rank() == 0;
}

void Fitting::set_learning_rate(double rate) {
  rate_ = rate;
  copies_.set_learning_rate(rate);
}

void Fitting::stop(const std::string& reason) {
  stopping_ = true;
  history_.ended_by = reason;
}

bool Fitting::interrupted() const {
  return options_.interrupt != nullptr && options_.interrupt->load() != 0;
}

void Fitting::call(const std::function<void(Callback&)>& what) {
  for (const auto& callback : options_.callbacks) what(*callback);
}

History Fitting::run() {
  call([this](Callback& callback) { callback.on_begin(*this); });
  while (epoch_ < options_.epochs && !stopping_) {
    run_epoch();
    if (!stopping_) end_epoch();
  }
  if (history_.ended_by.empty()) history_.complete = true;
  history_.iterations = copies_.iterations();
  call([this](Callback& callback) { callback.on_end(*this); });
  call([this](Callback& callback) {
    if (std::string problem = callback.problem(); !problem.empty())
      history_.problems.push_back(std::move(problem));
  });
  return history_;
}

std::optional<Step> Fitting::next_step() {
  const auto asked = std::chrono::steady_clock::now();
  try {
    auto step = feed_.next();
    waited_ += seconds_since(asked);
    return step;
  } catch (const CancelledError&) {
    if (!interrupted()) throw;
    stop("interrupted");
    return std::nullopt;
  }
}

void Fitting::run_epoch() {
  set_training(copies_, true);
  began_ = std::chrono::steady_clock::now();
  std::optional<std::uint64_t> steps = options_.steps_per_epoch;
  if (const Cardinality pass = feed_.plan().steps(); !steps && pass.is_counted())
    steps = pass.count();
  if (writes()) progress_.begin_epoch(epoch_, options_.epochs, steps, steps_);
  if (steps_ == 0) call([this](Callback& callback) { callback.on_epoch_begin(*this); });
  while (!stopping_ && !std::exchange(epoch_done_, false)) {
    auto step = next_step();
    if (!step) break;
    run_update(std::move(*step));
    const Scores so_far = sums_.scores(compiled_.metrics);
    if (writes()) progress_.step(steps_, so_far, waited_ / std::max(1e-9, seconds_since(began_)));
    call([&](Callback& callback) { callback.on_step_end(*this, so_far); });
  }
  if (stopping_) return;
  if (steps_ == 0)
    throw ConfigError(fmt::format("fit: epoch {} has no step: the dataset is empty", epoch_), {},
                      "check the plan: the folder, a filter or a shard may leave nothing");
}

/// One update of the weights, from one step or, with accumulate, from several.
void Fitting::run_update(Step step) {
  Update update;
  update.divisor = static_cast<double>(std::max<std::uint64_t>(1, step.global_valid()));
  update.where.epoch = epoch_;
  update.where.step = steps_;
  copies_.begin();
  in_update_ = true;
  for (std::uint64_t done = 1;; ++done) {
    const bool last = done >= compiled_.accumulate || feed_.at_end();
    ++steps_;
    run_step(step, update, done == 1, last);
    if (last) break;
    auto next = next_step();
    if (!next)
      return;  // interrupted: the steps so far do not change the weights, and are not saved
    step = std::move(*next);
  }
  copies_.finish_update();
  in_update_ = false;
}

void Fitting::run_step(const Step& step, Update& update, bool first, bool last) {
  update.results.assign(step.shares().size(), {});
  if (last) copies_.arm();
  copies_.strategy().each([&](Replica& replica) { take_part(replica, step, update, first, last); });
  ScoreSums own;
  for (const SharePass::Result& result : update.results) own.add(result.sums);
  if (!std::isfinite(own.loss)) return;  // counted as skipped
  own.loss += copies_.penalty() * own.samples;
  sums_.add(own);
}

void Fitting::take_part(Replica& replica, const Step& step, Update& update, bool first, bool last) {
  const std::size_t own = replica.local_id();
  const Batch& share = step.shares()[own];
  if (first) copies_.clear(replica);
  SharePass pass{model_, compiled_, copies_};
  pass.trains = true;
  pass.iteration = copies_.iterations();
  pass.divisor = update.divisor;
  if (share.rows() > 0 || copies_.synchronized()) update.results[own] = pass.run(replica, share);
  const auto& mine = update.results[own];
  const std::array<double, 2> counts{mine.sums.samples,
                                     static_cast<double>(mine.not_numbers.size())};
  const Tensor all = replica.sum_here(Tensor::of(std::span<const double>(counts), {2}));
  if (own == 0) {
    update.samples += all.values<double>()[0];
    update.not_numbers += all.values<double>()[1];
    for (const auto& result : update.results)
      update.bad_samples.insert(update.bad_samples.end(), result.not_numbers.begin(),
                                result.not_numbers.end());
  }
  if (last) copies_.reduce_and_apply(replica, [&] { return decide(update); });
}

/// On the first replica, once all gradients are there.
Mirrored::Outcome Fitting::decide(Update& update) {
  double samples = update.samples;
  double not_numbers = update.not_numbers;
  double interrupts = interrupted() ? 1 : 0;
  if (ProcessGroup* const group = copies_.group()) {
    torch::Tensor all = torch::tensor({samples, not_numbers, interrupts}, torch::kFloat64);
    group->sum("counts of the step", all);
    samples = all[0].item<double>();
    not_numbers = all[1].item<double>();
    interrupts = all[2].item<double>();
  }
  if (interrupts > 0) stop("interrupted");
  if (not_numbers > 0) {
    std::string which = update.bad_samples.empty()
                            ? "on another process"
                            : fmt::format("sample {}", fmt::join(update.bad_samples, ", "));
    if (which.size() > 200) which = which.substr(0, 200) + " ...";
    const std::string text =
        fmt::format("fit: the loss of {:.0f} of {:.0f} samples is not a number ({})", not_numbers,
                    samples, which);
    if (compiled_.on_nan == OnNan::raise)
      throw SampleError(text, update.where,
                        "lower the learning rate, clip the gradient, check these samples, or "
                        "compile with on_nan = skip");
    if (skipped_++ == 0 && writes())
      report(fmt::format("{}; the step is skipped ({})", text, update.where.text()));
    return {1, false};
  }
  if (samples == 0) return {1, false};
  return {update.divisor / samples, true};
}

void Fitting::end_epoch() {
  EpochLog log;
  log.epoch = epoch_;
  log.steps = steps_;
  log.train = sums_.over(copies_.group()).scores(compiled_.metrics);
  log.learning_rate = copies_.learning_rate();
  log.skipped_steps = skipped_;
  const double trained = seconds_since(began_);
  log.input_wait = trained > 0 ? waited_ / trained : 0;
  if (validation_) {
    copies_.merge_buffers();
    validation_->set_epoch(0);
    try {
      log.validation = evaluate_feed(model_, compiled_, copies_, *validation_)
                           .over(copies_.group())
                           .scores(compiled_.metrics);
    } catch (const CancelledError&) {
      if (!interrupted()) throw;
      epoch_done_ = true;  // a resume starts with the end of this epoch
      return stop("interrupted");
    }
  }
  log.seconds = seconds_since(began_);
  history_.epochs.push_back(log);
  sums_ = {};
  steps_ = skipped_ = 0;
  waited_ = 0;
  ++epoch_;
  if (writes()) progress_.end_epoch(log);
  call([&](Callback& callback) { callback.on_epoch_end(*this, log); });
}

Checkpoint Fitting::checkpoint() {
  copies_.merge_buffers();
  Checkpoint made;
  made.model = copies_.values();
  made.optimizer = copies_.optimizer_values();
  made.random = {{"cpu", at::detail::getDefaultCPUGenerator().get_state()}};
  made.data = feed_.state().to_json();
  made.run = copies_.run();
  made.iteration = copies_.iterations();
  made.epoch = epoch_;
  made.step = steps_;
  made.epoch_done = epoch_done_ || (steps_ > 0 && feed_.at_end());
  made.optimizer_name = compiled_.optimizer.name;
  made.model_text = values_text(copies_.copy(0).module());
  made.sums = sums_.over(copies_.group()).to_json();
  made.history = history_to_json(history_);
  made.learning_rate = rate_;
  made.replicas = copies_.strategy().num_replicas_in_sync();
  made.threads = at::get_num_threads();
  return made;
}

void Fitting::restore() {
  ProcessGroup* const group = copies_.group();
  std::string packed;
  std::string path;
  if (writes()) {
    if (const auto newest = newest_checkpoint(options_.resume, options_.resume_older)) {
      path = *newest;
      packed = pack_checkpoint(load_checkpoint(*newest));
    }
  }
  if (group != nullptr) {
    packed = group->broadcast("checkpoint", packed);
    path = group->broadcast("name of the checkpoint", path);
  }
  if (packed.empty()) {
    if (writes()) progress_.nothing_to_resume(options_.resume);
    return;
  }
  Checkpoint saved = unpack_checkpoint(packed);
  if (saved.optimizer_name != compiled_.optimizer.name)
    throw StateError(fmt::format("{} was saved with {}, but this model is compiled with {}", path,
                                 saved.optimizer_name, compiled_.optimizer.name),
                     {}, "compile with the same optimizer, or load_weights alone");
  copies_.restore(path, saved.model, saved.optimizer, saved.iteration);
  feed_.restore(State::parse(saved.data));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  try {
    for (const auto& [name, state] : saved.random) generator.set_state(state);
  } catch (const c10::Error& error) {
    throw StateError(fmt::format("{}: the state of torch's random numbers: {}", path,
                                 error.what_without_backtrace()));
  }
  epoch_ = saved.epoch;
  steps_ = saved.step;
  epoch_done_ = saved.epoch_done;
  if (saved.learning_rate) set_learning_rate(*saved.learning_rate);
  // The sums are those of all processes: only one of them takes them.
  if (writes()) sums_ = ScoreSums::parse(saved.sums);
  history_ = history_from_json(saved.history);
  if (!saved.run.empty()) copies_.set_run(saved.run);
  resumed_ = true;
  if (writes()) progress_.resumed(path, epoch_, steps_);
}

ScoreSums evaluate_feed(const ModelOptions& model, const CompileOptions& compiled, Mirrored& copies,
                        Feed& feed, std::optional<std::uint64_t> steps) {
  set_training(copies, false);
  SharePass pass{model, compiled, copies};
  ScoreSums sums;
  for (std::uint64_t done = 0; !steps || done < *steps; ++done) {
    const auto step = feed.next();
    if (!step) {
      if (steps)
        throw ConfigError(
            fmt::format("evaluate: {} steps were requested, the data has {}", *steps, done), {},
            "leave steps out: a pass ends by itself");
      break;
    }
    const auto results = copies.strategy().run(
        [&](Replica& replica, const Batch& share) {
          const torch::NoGradGuard no_grad;
          return pass.run(replica, share).sums;
        },
        *step);
    for (std::size_t r = 0; r < results.size(); ++r)
      if (results.has(r)) sums.add(results[r]);
  }
  sums.loss += copies.penalty(/*fresh=*/true) * sums.samples;
  set_training(copies, true);
  return sums;
}

}  // namespace penstock::train
