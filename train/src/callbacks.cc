#include <fmt/format.h>
#include <penstock/error.h>
#include <penstock/train/callback.h>
#include <penstock/train/checkpoint.h>

#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/report.h"
#include "checkpoint_files.h"
#include "history_json.h"
#include "log_file.h"

namespace penstock::train {
namespace {

/// Whether a smaller value of that score is better.
bool smaller_is_better(const std::string& name) {
  return name.find("loss") != std::string::npos || name.find("error") != std::string::npos;
}

/// The best value of one score so far.
class Best {
 public:
  explicit Best(std::string name, double min_change = 0)
      : name_(std::move(name)), min_change_(min_change) {}

  /// True if the epoch is the best so far. Throws ConfigError if there is no such score.
  bool improved(const EpochLog& log) {
    const auto value = log.find(name_);
    if (!value)
      throw ConfigError(fmt::format("callback: an epoch has no score \"{}\"", name_), {},
                        log.validation
                            ? "use loss, a metric, or one of them with the prefix val_"
                            : "pass a validation set to fit for names that begin with val_");
    if (std::isnan(*value)) return false;
    const double now = smaller_is_better(name_) ? *value : -*value;
    if (!(now < best_ - min_change_)) return false;
    best_ = now;
    return true;
  }
  void replay(const History& history) {
    for (const EpochLog& log : history.epochs) (void)improved(log);
  }

 private:
  std::string name_;
  double min_change_;
  double best_ = std::numeric_limits<double>::infinity();
};

class CheckpointSaver final : public Checkpoints {
 public:
  CheckpointSaver(std::string folder, const CheckpointOptions& options)
      : folder_(std::move(folder)), options_(options) {
    if (!options_.best.empty()) best_.emplace(options_.best);
  }
  void on_begin(Training& training) override {
    if (best_) best_->replay(training.history());
    tried_ = training.iteration();
    if (!training.writes()) return;
    try {
      claim_folder(folder_, tried_, training.resumed());
    } catch (const IoError& error) {
      report(fmt::format("{}; training starts", error.what()));
    }
    if (training.resumed() && run_of(step_path(folder_, tried_))) saved_ = tried_;
  }
  void on_step_end(Training& training, const Scores&) override {
    if (options_.every_steps > 0 && training.iteration() >= tried_ + options_.every_steps)
      save(training);
  }
  void on_epoch_end(Training& training, const EpochLog& log) override {
    const Checkpoint made = save(training);
    if (best_ && best_->improved(log) && training.writes())
      guarded(best_failed_, [&] { (void)save_checkpoint_as(folder_, "best", made); });
  }
  void on_end(Training& training) override {
    if (options_.on_stop && training.can_save() && training.iteration() > tried_) save(training);
  }
  [[nodiscard]] std::string problem() const override {
    const auto text = [&](const Failing& failing, const char* what) {
      return failing.times == 0
                 ? std::string()
                 : fmt::format("the last save{} failed: {}; {}", what, failing.why, on_disk());
    };
    const std::string step = text(steps_failed_, "");
    return step.empty() ? text(best_failed_, " of the best weights") : step;
  }
  [[nodiscard]] std::optional<std::uint64_t> saved() const override { return saved_; }

 private:
  struct Failing {
    std::uint64_t times = 0;  // in a row
    std::string why;
  };

  Checkpoint save(Training& training) {
    Checkpoint made = training.checkpoint();  // on every process: buffers are merged
    tried_ = training.iteration();
    if (training.writes())
      guarded(steps_failed_, [&] {
        (void)save_checkpoint(folder_, made, options_.keep);
        saved_ = tried_;
      });
    return made;
  }
  /// Training matters more than a save: a failure is reported and retried next time.
  template <typename Save>
  void guarded(Failing& failing, Save save) {
    try {
      save();
      failing = {};
    } catch (const IoError& error) {
      failing.why = error.what();
      if (is_time_to_report(++failing.times))
        report(fmt::format("{}; training continues; {}", failing.why, on_disk()));
    }
  }
  [[nodiscard]] std::string on_disk() const {
    return saved_
               ? fmt::format("the newest checkpoint in {} is that of update {}", folder_, *saved_)
               : fmt::format("no checkpoint of this run is in {}", folder_);
  }

  std::string folder_;
  CheckpointOptions options_;
  std::optional<Best> best_;
  std::uint64_t tried_ = 0;             // the update of the last save, or of the start
  std::optional<std::uint64_t> saved_;  // of the last save that is on disk
  Failing steps_failed_;
  Failing best_failed_;
};

class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options)
      : options_(options), best_(options.watch, options.min_change) {}
  void on_begin(Training& training) override {
    for (const EpochLog& log : training.history().epochs) note(log);
  }
  void on_epoch_end(Training& training, const EpochLog& log) override {
    note(log);
    if (worse_ > 0 && worse_ >= options_.patience)
      training.stop(
          fmt::format("early stopping: {} was not better for {} epochs", options_.watch, worse_));
  }

 private:
  void note(const EpochLog& log) { worse_ = best_.improved(log) ? 0 : worse_ + 1; }
  EarlyStoppingOptions options_;
  Best best_;
  std::uint64_t worse_ = 0;
};

std::string json_line(const EpochLog& log, bool) {
  return epoch_json(log).dump() + '\n';
}

/// With the names of the columns before the first line.
std::string csv_line(const EpochLog& log, bool first) {
  std::string names;
  std::string values;
  const Json json = epoch_json(log);
  for (const auto& [name, value] : json.items()) {
    const char* const comma = names.empty() ? "" : ",";
    names += fmt::format("{}{}", comma, name);
    values += fmt::format("{}{}", comma, value.is_null() ? "nan" : value.dump());
  }
  return (first ? names + '\n' : "") + values + '\n';
}

/// One line per epoch. A run starts the file from its history, so that the file of a resumed run
/// has each epoch once, wherever the previous run was killed.
class LineLog final : public Callback {
 public:
  using Line = std::string (*)(const EpochLog& log, bool first);
  LineLog(const std::string& file, Line line) : log_("log " + file, file), line_(line) {}

  void on_begin(Training& training) override {
    if (!training.writes()) return;
    std::string text;
    for (const EpochLog& log : training.history().epochs) text += line_(log, text.empty());
    first_ = text.empty();
    log_.begin(text);
  }
  void on_epoch_end(Training& training, const EpochLog& log) override {
    if (training.writes()) log_.add(line_(log, std::exchange(first_, false)));
  }
  void on_end(Training& training) override {
    if (training.writes()) log_.add("");
  }
  [[nodiscard]] std::string problem() const override { return log_.problem(); }

 private:
  LogFile log_;
  Line line_;
  bool first_ = true;
};

class HookCallback final : public Callback {
 public:
  explicit HookCallback(Hooks functions) : functions_(std::move(functions)) {}
  void on_epoch_begin(Training& training) override {
    if (functions_.on_epoch_begin) functions_.on_epoch_begin(training);
  }
  void on_step_end(Training& training, const Scores& so_far) override {
    if (functions_.on_step_end) functions_.on_step_end(training, so_far);
  }
  void on_epoch_end(Training& training, const EpochLog& log) override {
    if (functions_.on_epoch_end) functions_.on_epoch_end(training, log);
  }

 private:
  Hooks functions_;
};

}  // namespace

std::shared_ptr<Checkpoints> checkpoints(const std::string& folder,
                                         const CheckpointOptions& options) {
  return std::make_shared<CheckpointSaver>(folder, options);
}
std::shared_ptr<Callback> early_stopping(const EarlyStoppingOptions& options) {
  return std::make_shared<EarlyStopping>(options);
}
std::shared_ptr<Callback> csv_log(const std::string& file) {
  return std::make_shared<LineLog>(file, csv_line);
}
std::shared_ptr<Callback> json_log(const std::string& file) {
  return std::make_shared<LineLog>(file, json_line);
}
std::shared_ptr<Callback> learning_rate(std::function<double(std::uint64_t)> rate) {
  return hooks({.on_epoch_begin = [rate = std::move(rate)](Training& training) {
    training.set_learning_rate(rate(training.epoch()));
  }});
}
std::shared_ptr<Callback> hooks(Hooks functions) {
  return std::make_shared<HookCallback>(std::move(functions));
}

}  // namespace penstock::train
