// `penstock train`: trains on a folder of images. A separate program, which the penstock command
// starts, so that the command does not need torch. tested in train/tests/command.py
#include <fmt/format.h>
#include <penstock/train.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <charconv>
#include <csignal>
#include <filesystem>

#include "base/world.h"
#include "penstock/tail.h"

namespace penstock::train {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kRefused = 2;

struct Options {
  std::string data;
  std::string validation;
  std::uint64_t replicas = 1;
  std::string device = "cpu";
  std::uint64_t batch = 64;
  std::uint64_t epochs = 5;
  std::string model = "cnn";
  std::int64_t size = 64;
  std::string optimizer = "adam";
  double rate = 1e-3;
  std::string tail = "short";
  std::string checkpoints;
  std::string resume;
  bool resume_older = false;
  std::uint64_t every = 0;
  std::string json;
  std::string csv;
  std::string tensorboard;
  std::uint64_t seed = 7;
  bool augment = false;
  bool decay = false;
  bool bf16 = false;
  bool sync_norm = false;
  bool skip = false;
  double timeout = 30;
  std::string report;
};

std::atomic<int> interrupt{0};

/// The first signal lets the step finish; the second exits at once.
void on_signal(int signal) {
  if (interrupt.exchange(signal) != 0) ::_exit(128 + signal);
}

void catch_signals() {
  ::signal(SIGXFSZ, SIG_IGN);  // a file that grows past `ulimit -f` makes its write fail
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as nohup requested
    struct sigaction action{};
    action.sa_handler = on_signal;
    ::sigaction(signal, &action, nullptr);
  }
}

Dataset pictures(const Options& options, const std::string& folder, bool trains) {
  image::Chain chain = image::decode().resize(options.size, options.size);
  if (trains && options.augment) chain = chain.random_flip().random_brightness(0.2F);
  const Dataset all = Dataset::image_folder(folder);
  const Dataset ordered = trains ? all.shuffle({.seed = options.seed}) : all;
  return ordered.map(chain.normalize().channels_first())
      .batch(static_cast<std::int64_t>(options.batch))
      .with_options({.name = trains ? "train" : "validation"});
}

OptimizerSpec optimizer_of(const Options& options) {
  if (options.optimizer == "sgd") return sgd(options.rate, {.momentum = 0.9});
  if (options.optimizer == "adamw") return adamw(options.rate);
  if (options.optimizer == "rmsprop") return rmsprop(options.rate);
  return adam(options.rate);
}

std::unique_ptr<Strategy> strategy_of(const Options& options) {
  std::vector<std::string> devices;
  const std::uint32_t first = find_world().local_rank.value_or(0);
  for (std::uint64_t i = 0; i < options.replicas; ++i)
    devices.push_back(fmt::format("{}:{}", options.device,
                                  options.device == "cpu" ? i : first * options.replicas + i));
  if (find_world().size == 1) return std::make_unique<MirroredStrategy>(devices);
  ProcessGroupOptions group;
  group.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout * 1000));
  return std::make_unique<MultiWorkerMirroredStrategy>(devices, group);
}

void expect_same_classes(const Dataset& train, const Dataset& validation) {
  const auto wanted = train.class_names();
  const auto given = validation.class_names();
  if (wanted == given) return;
  for (const std::string& name : given)
    if (std::ranges::find(wanted, name) == wanted.end())
      throw ConfigError(fmt::format("--val has the class {}, which --data does not have", name));
  throw ConfigError(fmt::format("--val has {} classes, --data {}", given.size(), wanted.size()), {},
                    "labels are numbers of folders, so both need the same folders");
}

/// What the run is asked to do, and where its checkpoints go.
struct Run {
  FitOptions fit;
  std::string folder;                  // "": none
  std::shared_ptr<Checkpoints> saver;  // null if there is no folder
};

Run run_of(const Options& options) {
  Run run;
  FitOptions& fit = run.fit;
  fit.epochs = options.epochs;
  fit.interrupt = &interrupt;
  fit.loader.tail = tail_named(options.tail);
  if (options.skip) fit.loader.on_error = OnError::skip;
  fit.resume = options.resume;
  fit.resume_older = options.resume_older;
  fit.loader.report_dir = options.report;
  run.folder = options.checkpoints.empty() ? options.resume : options.checkpoints;
  if (!run.folder.empty()) {
    run.saver = checkpoints(run.folder, {.every_steps = options.every});
    fit.callbacks.push_back(run.saver);
  }
  if (!options.json.empty()) fit.callbacks.push_back(json_log(options.json));
  if (!options.csv.empty()) fit.callbacks.push_back(csv_log(options.csv));
  if (!options.tensorboard.empty()) fit.callbacks.push_back(tensorboard(options.tensorboard));
  return run;
}

/// stdout may be a file on a full disk, for which fmt::print throws; training matters more.
void say(std::FILE* out, const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), out);
}

/// What a person who stopped the run can rely on.
std::string saved_text(const Run& run, std::uint64_t updates) {
  if (!run.saver) return "nothing was saved: use --checkpoints";
  const auto saved = run.saver->saved();
  const std::string why = run.saver->problem();
  if (!saved)
    return why.empty() ? fmt::format("no checkpoint of this run is in {}", run.folder) : why;
  if (*saved == updates) return fmt::format("saved: resume with --resume {}", run.folder);
  return fmt::format("{}--resume {} resumes after update {}", why.empty() ? "" : why + "; ",
                     run.folder, *saved);
}

/// Returns the exit code, or exits if a signal ended the run.
int finish(const Run& run, const History& history, bool talks) {
  const int signal = interrupt.load();
  if (signal != 0 && talks)
    say(stderr, fmt::format("penstock: {} after {} updates; {}\n",
                            signal == SIGINT ? "interrupted" : "terminated", history.iterations,
                            saved_text(run, history.iterations)));
  for (const std::string& problem : history.problems)
    if (talks && !(signal != 0 && run.saver && problem == run.saver->problem()))
      say(stderr, fmt::format("penstock: after {} updates {}\n", history.iterations, problem));
  if (signal != 0) {
    std::fflush(nullptr);
    ::_exit(128 + signal);
  }
  return history.complete && history.problems.empty() ? kDone : kFailed;
}

int train(const Options& options) {
  catch_signals();
  const auto strategy = strategy_of(options);
  const bool talks = find_world().rank == 0;
  const Dataset data = pictures(options, options.data, true);
  const auto classes = static_cast<std::int64_t>(data.class_names().size());
  Run run = run_of(options);
  FitOptions& fit = run.fit;
  if (!options.validation.empty()) {
    fit.validation = pictures(options, options.validation, false);
    expect_same_classes(data, *fit.validation);
  }
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  Model model(model_named(options.model, classes, {options.size, options.size}),
              {.strategy = strategy.get()});
  CompileOptions compiled;
  compiled.optimizer = optimizer_of(options);
  compiled.metrics = {accuracy()};
  if (options.decay)
    compiled.schedule =
        cosine_decay(options.rate, options.epochs * Plan(data.resolve()).steps().count());
  compiled.bf16 = options.bf16;
  compiled.sync_batch_norm = options.sync_norm;
  model.compile(compiled);
  if (talks) {
    DistributeOptions plain;
    plain.loader = fit.loader;
    say(stdout, fmt::format("{} classes, model {}, {} replicas on {}\n", classes, options.model,
                            strategy->num_replicas_in_sync(), options.device));
    if (find_world().size == 1)
      say(stdout, strategy->distribute(data, plain).plan().explain() + "\n");
  }
  return finish(run, model.fit(data, fit), talks);
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        std::uint64_t number = 0;
        const char* const end = text.data() + text.size();
        const auto [after, error] = std::from_chars(text.data(), end, number);
        if (error == std::errc() && after == end && number >= least && number <= most) return "";
        return fmt::format("expected a whole number from {} to {}, got \"{}\"", least, most, text);
      },
      "N");
}

/// CLI::Range accepts "nan".
CLI::Validator number(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        double value = 0;
        const char* const end = text.data() + text.size();
        const auto [after, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && after == end && value >= least && value <= most) return "";
        return fmt::format("expected a number from {} to {}, got \"{}\"", least, most, text);
      },
      "NUMBER");
}

/// Arguments that are valid each by itself but not together.
void check(const Options& options) {
  if (options.resume_older && options.resume.empty())
    throw ConfigError("--resume-older needs --resume", {}, "pass the folder with --resume DIR");
  if (options.every > 0 && options.checkpoints.empty() && options.resume.empty())
    throw ConfigError("--every needs a folder to save to", {}, "pass one with --checkpoints DIR");
  if (!options.json.empty() && options.json == options.csv)
    throw ConfigError(fmt::format("--json and --csv both write to {}", options.json), {},
                      "use a separate file for each");
}

void add_options(CLI::App& app, Options& options) {
  const auto positive = whole_number(1, 1U << 30U);
  app.add_option("--data", options.data, "folder of images, with one folder per class")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--val", options.validation, "folder to validate on after each epoch")
      ->check(CLI::ExistingDirectory);
  app.add_option("--replicas", options.replicas, "copies of the model in this process")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "global batch, of all replicas together")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)->check(positive)->capture_default_str();
  app.add_option("--model", options.model)
      ->check(CLI::IsMember({"linear", "cnn", "resnet18"}))
      ->capture_default_str();
  app.add_option("--size", options.size, "images are resized to this height and width in pixels")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer)
      ->check(CLI::IsMember({"sgd", "adam", "adamw", "rmsprop"}))
      ->capture_default_str();
  app.add_option("--lr", options.rate, "learning rate")->capture_default_str();
  app.add_option("--tail", options.tail, "what to do with the last, uneven step")
      ->check(CLI::IsMember({"short", "even", "pad", "drop", "wrap", "strict"}))
      ->capture_default_str();
  app.add_option("--checkpoints", options.checkpoints, "folder to save to after each epoch");
  app.add_option("--every", options.every, "save after this many updates too; 0: only after epochs")
      ->check(whole_number(0, 1U << 30U));
  app.add_option("--resume", options.resume,
                 "resume from the newest checkpoint in this folder, and save there");
  app.add_flag("--resume-older", options.resume_older,
               "resume from an older checkpoint if the newest cannot be read");
  app.add_option("--json", options.json, "log file with one JSON object per epoch");
  app.add_option("--csv", options.csv, "log file with one line per epoch");
  app.add_option("--tensorboard", options.tensorboard, "folder for TensorBoard");
  app.add_option("--report", options.report,
                 "folder for the trace of each epoch; penstock report FOLDER shows the newest one");
  app.add_option("--seed", options.seed)->check(whole_number(0, UINT64_MAX))->capture_default_str();
  app.add_flag("--decay", options.decay, "decay the learning rate to 0 along a cosine");
  app.add_flag("--augment", options.augment, "random flip and brightness");
  app.add_flag("--bf16", options.bf16, "use 16-bit arithmetic where it is safe");
  app.add_flag("--sync-batch-norm", options.sync_norm, "statistics over all replicas");
  app.add_flag("--skip-broken", options.skip, "skip broken images instead of stopping");
  app.add_option("--timeout", options.timeout,
                 "seconds until a missing process is an error; the run waits for slow ones")
      ->check(number(1, 86400))
      ->capture_default_str();
}

int parse_and_train(int argc, char** argv) {
  CLI::App app("penstock train: trains on a folder of images", "penstock train");
  app.footer(
      "Under torchrun: torchrun --no-python --nproc-per-node 2 penstock train --data DIR\n"
      "Exit codes: 0 trained and saved as asked, 1 failed (also when the last save or a log could\n"
      "not be written), 2 refused, 130 and 143 ended by a signal.");
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
    check(options);
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    return train(options);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "penstock: {}\n", error.what());
  } catch (const ConfigError& error) {
    fmt::print(stderr, "penstock: {}\n", error.what());
  }
  return kRefused;
}

}  // namespace
}  // namespace penstock::train

int main(int argc, char** argv) {
  try {
    return penstock::train::parse_and_train(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "penstock: {}\n", error.what());
  }
  // Torch threads that wait for a lost process must not delay the end.
  std::fflush(nullptr);
  ::_exit(penstock::train::kFailed);
}
