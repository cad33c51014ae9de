// `penstock train`: trains a folder of pictures. A program of its own, which the penstock command
// starts, so that the command does not need torch.
// tested in train/tests/command.py
#include <fmt/format.h>
#include <penstock/train.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <csignal>
#include <filesystem>

#include "base/world.h"
#include "graph/tail.h"

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
};

std::atomic<int> interrupt{0};

/// The first signal lets the step end; the second leaves at once.
void on_signal(int signal) {
  if (interrupt.exchange(signal) != 0) ::_exit(128 + signal);
}

void catch_signals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as nohup asked
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
                    "labels count folders, so that both need the same");
}

FitOptions fit_options(const Options& options) {
  FitOptions fit;
  fit.epochs = options.epochs;
  fit.interrupt = &interrupt;
  fit.loader.tail = tail_named(options.tail);
  if (options.skip) fit.loader.on_error = OnError::skip;
  fit.resume = options.resume;
  const std::string folder = options.checkpoints.empty() ? options.resume : options.checkpoints;
  if (!folder.empty()) fit.callbacks.push_back(checkpoints(folder, {.every_steps = options.every}));
  if (!options.json.empty()) fit.callbacks.push_back(json_log(options.json));
  if (!options.csv.empty()) fit.callbacks.push_back(csv_log(options.csv));
  if (!options.tensorboard.empty()) fit.callbacks.push_back(tensorboard(options.tensorboard));
  return fit;
}

int train(const Options& options) {
  catch_signals();
  const auto strategy = strategy_of(options);
  const bool talks = find_world().rank == 0;
  const Dataset data = pictures(options, options.data, true);
  const auto classes = static_cast<std::int64_t>(data.class_names().size());
  FitOptions fit = fit_options(options);
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
    fmt::print("{} classes, model {}, {} replicas on {}\n", classes, options.model,
               strategy->num_replicas_in_sync(), options.device);
    if (find_world().size == 1)
      fmt::print("{}\n", strategy->distribute(data, plain).plan().explain());
  }
  const History history = model.fit(data, fit);
  if (const int signal = interrupt.load(); signal != 0) {
    if (talks)
      fmt::print(stderr, "penstock: {} after {} updates{}\n",
                 signal == SIGINT ? "interrupted" : "terminated", history.iterations,
                 fit.callbacks.empty() || (options.checkpoints.empty() && options.resume.empty())
                     ? "; nothing was saved: use --checkpoints"
                     : "; saved: go on with --resume");
    std::fflush(nullptr);
    ::_exit(128 + signal);
  }
  return history.complete ? kDone : kFailed;
}

void add_options(CLI::App& app, Options& options) {
  const auto positive = CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30U);
  app.add_option("--data", options.data, "folder of pictures, one folder for each class")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--val", options.validation, "the same, to validate on after each epoch")
      ->check(CLI::ExistingDirectory);
  app.add_option("--replicas", options.replicas, "copies of the model in this process")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "global batch: of all replicas")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)->check(positive)->capture_default_str();
  app.add_option("--model", options.model)
      ->check(CLI::IsMember({"linear", "cnn", "resnet18"}))
      ->capture_default_str();
  app.add_option("--size", options.size, "pictures are made so many pixels high and wide")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--optimizer", options.optimizer)
      ->check(CLI::IsMember({"sgd", "adam", "adamw", "rmsprop"}))
      ->capture_default_str();
  app.add_option("--lr", options.rate, "learning rate")->capture_default_str();
  app.add_option("--tail", options.tail, "what becomes of the last, uneven step")
      ->check(CLI::IsMember({"short", "even", "pad", "drop", "wrap", "strict"}))
      ->capture_default_str();
  app.add_option("--checkpoints", options.checkpoints, "folder to save to after each epoch");
  app.add_option("--every", options.every, "and after so many updates");
  app.add_option("--resume", options.resume,
                 "go on from the newest checkpoint in this folder, and save there");
  app.add_option("--json", options.json, "log: one JSON object for each epoch");
  app.add_option("--csv", options.csv, "log: one line for each epoch");
  app.add_option("--tensorboard", options.tensorboard, "folder for TensorBoard");
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_flag("--decay", options.decay, "the rate falls along a cosine to 0 over the run");
  app.add_flag("--augment", options.augment, "random flip and brightness");
  app.add_flag("--bf16", options.bf16, "16-bit arithmetic where it is safe");
  app.add_flag("--sync-batch-norm", options.sync_norm, "statistics over all replicas");
  app.add_flag("--skip-broken", options.skip, "leave broken pictures out instead of stopping");
  app.add_option("--timeout", options.timeout, "seconds until a missing process is named")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
}

int parse_and_train(int argc, char** argv) {
  CLI::App app("penstock train: trains a folder of pictures", "penstock train");
  app.footer(
      "Under torchrun: torchrun --no-python --nproc-per-node 2 penstock train --data DIR\n"
      "Exit codes: 0 trained as asked, 1 failed, 2 refused, 130 and 143 ended by a signal.");
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
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
  // Threads of torch that wait for a lost process must not hold up the end.
  std::fflush(nullptr);
  ::_exit(penstock::train::kFailed);
}
