// `penstock plan`: how a shuffled range of samples, or the images of a folder, is distributed over
// the replicas, before anything runs. tested in tests/command_test.py
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/printable.h"
#include "command.h"
#include "penstock/penstock.h"
#include "penstock/tail.h"

namespace penstock::cli {
namespace {

struct PlanCommand {
  std::uint64_t samples = 0;
  std::optional<std::string> data;
  std::optional<FolderIndex> folder = {};  // of `data`
  std::uint64_t batch = 0;
  std::uint32_t replicas = 1;
  std::string tail = "short";
  std::uint64_t seed = 0;
  std::uint64_t steps_per_epoch = 0;  // 0: an epoch is one pass
  bool restart = false;
  bool short_epoch = false;
  bool json = false;
  bool check = false;
};

Plan plan_of(const PlanCommand& options, Tail tail) {
  const Dataset samples = options.folder
                              ? Dataset::image_folder(*options.folder)
                              : Dataset::range(static_cast<std::int64_t>(options.samples));
  const Dataset dataset =
      samples.shuffle({.seed = options.seed}).batch(static_cast<std::int64_t>(options.batch));
  std::optional<EpochSteps> epochs;
  if (options.steps_per_epoch > 0)
    epochs = {options.steps_per_epoch, options.restart, options.short_epoch};
  return Plan(dataset,
              {.shares = {options.replicas, 0, options.replicas}, .tail = tail, .epochs = epochs});
}

/// Why tail=strict would refuse these numbers, or nullopt.
std::optional<std::string> refused_if_strict(const PlanCommand& options) {
  try {
    (void)plan_of(options, Tail::strict);
  } catch (const ConfigError& error) {
    return error.message();
  }
  return std::nullopt;
}

std::string name_of(const PassCheck::Wrong& wrong) {
  const std::string place = fmt::format("step {}, replica {}", wrong.step, wrong.share);
  return wrong.sample ? fmt::format("sample {} {} ({})", wrong.sample->number, wrong.what, place)
                      : fmt::format("{} ({})", wrong.what, place);
}

std::vector<std::uint64_t> numbers_of(const std::vector<SampleKey>& samples) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(samples.size());
  for (const SampleKey& sample : samples) numbers.push_back(sample.number);
  return numbers;
}

Json as_json(const PassCheck& check) {
  Json json = {{"ok", !check.wrong},       {"steps", check.steps},
               {"samples", check.samples}, {"repeated", check.repeated},
               {"dropped", check.dropped}, {"dropped_first", numbers_of(check.dropped_first)}};
  if (check.wrong) {
    json["wrong"] = {
        {"step", check.wrong->step}, {"replica", check.wrong->share}, {"what", check.wrong->what}};
    if (check.wrong->sample) json["wrong"]["sample"] = check.wrong->sample->number;
  }
  return json;
}

void add_folder(const FolderIndex& folder, Json& json) {
  json["files"] = folder.files();
  json["bytes"] = folder.bytes();
  json["classes"] = Json::array();
  const auto counts = folder.class_files();
  for (std::size_t i = 0; i < counts.size(); ++i)
    json["classes"].push_back({{"name", printable(folder.class_names()[i])}, {"files", counts[i]}});
  json["left_out"] = Json::array();
  for (const FolderIndex::LeftOut& left : folder.left_out())
    json["left_out"].push_back(
        {{"reason", left.reason}, {"count", left.count}, {"first", left.first}});
}

void print_folder(const FolderIndex& folder) {
  constexpr std::size_t kShownMax = 10;
  const auto counts = folder.class_files();
  fmt::print("folder {}: {} files, {} bytes, {} classes\n", printable(folder.root()),
             folder.files(), folder.bytes(), counts.size());
  for (std::size_t i = 0; i < std::min(counts.size(), kShownMax); ++i)
    fmt::print("  class {}: {}, {} files\n", i, printable(folder.class_names()[i]), counts[i]);
  if (counts.size() > kShownMax) fmt::print("  and {} more\n", counts.size() - kShownMax);
  const std::string left_out = folder.left_out_text();
  fmt::print("  left out: {}\n", left_out.empty() ? "nothing" : left_out);
}

Json as_json(const Plan& plan, const PlanCommand& options) {
  const TailCost cost = plan.tail_cost();
  const std::uint64_t steps = plan.steps().count();
  const auto cut = [&](std::uint64_t step) {
    return steps == 0 ? std::vector<std::uint64_t>{} : plan.cut(step);
  };
  Json json = {{"samples", options.samples},
               {"steps", steps},
               {"global_batch", options.batch},
               {"replicas", options.replicas},
               {"tail", options.tail},
               {"seed", options.seed},
               {"delivered", options.samples - cost.dropped + cost.repeated},
               {"dropped", cost.dropped},
               {"repeated", cost.repeated},
               {"padded", cost.padded},
               {"first_cut", cut(0)},
               {"last_cut", cut(steps - 1)},
               {"batch_bytes", plan.batch_bytes().value_or(0)},
               {"digests", {{"order", plan.digests().order}, {"values", plan.digests().values}}}};
  if (options.steps_per_epoch > 0)
    json["epoch"] = {{"asked", options.steps_per_epoch},
                     {"steps", std::min(options.steps_per_epoch, steps)},
                     {"restart", options.restart}};
  const auto refused = refused_if_strict(options);
  json["refused_if_strict"] = refused ? Json(*refused) : Json();
  if (options.folder) add_folder(*options.folder, json);
  return json;
}

void print_plan(const Plan& plan, const PlanCommand& options) {
  const TailCost cost = plan.tail_cost();
  fmt::print("{}", plan.explain());
  if (options.folder) print_folder(*options.folder);
  fmt::print("tail {}: {} samples dropped, {} repeated, {} rows padded in a pass\n", options.tail,
             cost.dropped, cost.repeated, cost.padded);
  if (const auto refused = refused_if_strict(options))
    fmt::print("tail strict would refuse it: {}\n", *refused);
  else
    fmt::print(
        "tail strict would accept it: every step is full and all shares have the same size\n");
}

void print_check(const PassCheck& check) {
  if (check.wrong) return fmt::print("check: IT DOES NOT HOLD: {}\n", name_of(*check.wrong));
  fmt::print("check: it holds: {} steps of the same number of shares, {} samples in them\n",
             check.steps, check.samples);
  fmt::print("  every sample once, in one share{}{}\n", check.dropped > 0 ? ", or dropped" : "",
             check.repeated > 0 ? fmt::format("; {} once more by the wrap", check.repeated) : "");
  if (check.dropped > 0)
    fmt::print("  {} dropped: {}{}\n", check.dropped,
               fmt::join(numbers_of(check.dropped_first), ", "),
               check.dropped > check.dropped_first.size() ? ", ..." : "");
}

int run_plan(PlanCommand& options) {
  if (options.data) {
    options.folder = list_images(*options.data);
    options.samples = options.folder->files();
  }
  const Plan plan = plan_of(options, tail_named(options.tail).value_or(Tail::short_));
  Json json;
  if (options.json) {
    json = as_json(plan, options);
  } else {
    print_plan(plan, options);
    std::fflush(stdout);
  }
  std::optional<PassCheck> check;
  if (options.check) check = plan.check();
  if (options.json) {
    if (check) json["check"] = as_json(*check);
    fmt::print("{}\n", json.dump(2));
  } else if (check) {
    print_check(*check);
  }
  return check && check->wrong ? kFailed : kDone;
}

}  // namespace

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

void add_plan(CLI::App& app, int& code) {
  auto* const verb =
      app.add_subcommand("plan", "steps, cuts and costs of a dataset, before anything runs");
  static PlanCommand options;
  constexpr std::uint64_t kSamplesMax = 1ULL << 62;
  auto* const what = verb->add_option_group("data", "the samples");
  what->add_option("--samples", options.samples, "number of samples")
      ->check(whole_number(0, kSamplesMax));
  what->add_option("--data", options.data, "a folder of images, with one folder per class");
  what->require_option(1);
  verb->add_option("--batch", options.batch, "global batch")
      ->required()
      ->check(whole_number(1, kSamplesMax));
  verb->add_option("--replicas", options.replicas, "shares of each step")
      ->required()
      ->check(whole_number(1, 1U << 20));
  verb->add_option("--tail", options.tail, "what to do with an incomplete last step")
      ->check(CLI::IsMember({"short", "even", "pad", "drop", "wrap", "strict"}))
      ->capture_default_str();
  verb->add_option("--seed", options.seed, "seed of the order")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  auto* const epoch = verb->add_option("--steps-per-epoch", options.steps_per_epoch,
                                       "steps per epoch, instead of one pass")
                          ->check(whole_number(1, kSamplesMax));
  verb->add_flag("--restart", options.restart, "each epoch starts a new pass")->needs(epoch);
  verb->add_flag("--short-epoch", options.short_epoch, "the end of the data ends an epoch early")
      ->needs(epoch);
  verb->add_flag("--json", options.json, "as JSON");
  verb->add_flag("--check", options.check,
                 "walk through the pass and check that every sample comes once");
  verb->callback([&code] { code = run_plan(options); });
}

}  // namespace penstock::cli
