// tested in train/tests/checkpoint_test.cc
#include "history_json.h"

#include <fmt/format.h>
#include <penstock/error.h>

#include <cmath>
#include <limits>

#include "base/json.h"

namespace penstock::train {
namespace {

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
double number_of(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

Json scores_json(const Scores& scores) {
  Json metrics = Json::array();
  for (const auto& [name, value] : scores.metrics)
    metrics.push_back(Json::array({name, number(value)}));
  return {{"loss", number(scores.loss)}, {"samples", scores.samples}, {"metrics", metrics}};
}
Scores scores_of(const Json& json) {
  Scores scores;
  scores.loss = number_of(json.at("loss"));
  scores.samples = whole_number<std::uint64_t>(json.at("samples"));
  for (const Json& metric : json.at("metrics"))
    scores.metrics.emplace_back(metric.at(0).get<std::string>(), number_of(metric.at(1)));
  return scores;
}

}  // namespace

std::optional<double> Scores::find(const std::string& name) const {
  if (name == "loss") return loss;
  for (const auto& [its, value] : metrics)
    if (its == name) return value;
  return std::nullopt;
}

std::optional<double> EpochLog::find(const std::string& name) const {
  if (name == "learning_rate") return learning_rate;
  if (name == "input_wait") return input_wait;
  if (name.starts_with("val_")) return validation ? validation->find(name.substr(4)) : std::nullopt;
  return train.find(name);
}

Json epoch_json(const EpochLog& log) {
  Json json = {{"epoch", log.epoch},
               {"steps", log.steps},
               {"samples", log.train.samples},
               {"loss", number(log.train.loss)}};
  for (const auto& [name, value] : log.train.metrics) json[name] = number(value);
  if (log.validation) {
    json["val_samples"] = log.validation->samples;
    json["val_loss"] = number(log.validation->loss);
    for (const auto& [name, value] : log.validation->metrics) json["val_" + name] = number(value);
  }
  json["input_wait"] = number(log.input_wait);
  json["learning_rate"] = log.learning_rate;
  json["seconds"] = log.seconds;
  if (log.skipped_steps > 0) json["skipped_steps"] = log.skipped_steps;
  return json;
}

std::string history_to_json(const History& history) {
  Json epochs = Json::array();
  for (const EpochLog& log : history.epochs) {
    Json one = {{"epoch", log.epoch},
                {"steps", log.steps},
                {"train", scores_json(log.train)},
                {"learning_rate", log.learning_rate},
                {"seconds", log.seconds},
                {"input_wait", log.input_wait},
                {"skipped_steps", log.skipped_steps}};
    if (log.validation) one["validation"] = scores_json(*log.validation);
    epochs.push_back(std::move(one));
  }
  return epochs.dump();
}

History history_from_json(const std::string& text) {
  History history;
  try {
    const auto epochs = parse_json(text);
    if (!epochs) throw std::runtime_error("it is no JSON");
    for (const Json& one : *epochs) {
      EpochLog log;
      log.epoch = whole_number<std::uint64_t>(one.at("epoch"));
      log.steps = whole_number<std::uint64_t>(one.at("steps"));
      log.train = scores_of(one.at("train"));
      if (one.contains("validation")) log.validation = scores_of(one.at("validation"));
      log.learning_rate = one.at("learning_rate").get<double>();
      log.seconds = one.at("seconds").get<double>();
      log.input_wait = one.at("input_wait").get<double>();
      log.skipped_steps = whole_number<std::uint64_t>(one.at("skipped_steps"));
      history.epochs.push_back(std::move(log));
    }
  } catch (const std::exception& error) {
    throw StateError(fmt::format("the history of a checkpoint cannot be read: {}", error.what()));
  }
  return history;
}

}  // namespace penstock::train
