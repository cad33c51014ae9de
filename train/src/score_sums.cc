#include "score_sums.h"

#include <fmt/format.h>
#include <penstock/train/tensors.h>

#include <limits>

#include "base/json.h"

namespace penstock::train {

void ScoreSums::add(const ScoreSums& other) {
  loss += other.loss;
  samples += other.samples;
  metrics.resize(std::max(metrics.size(), other.metrics.size()));
  for (std::size_t m = 0; m < other.metrics.size(); ++m) {
    metrics[m].resize(std::max(metrics[m].size(), other.metrics[m].size()));
    for (std::size_t i = 0; i < other.metrics[m].size(); ++i) metrics[m][i] += other.metrics[m][i];
  }
}

ScoreSums ScoreSums::over(ProcessGroup* group) const {
  if (group == nullptr) return *this;
  // As texts: a process without rows has no sums, and need not know how many there are.
  ScoreSums all;
  for (const std::string& one : group->gather("scores", to_json())) all.add(parse(one));
  return all;
}

Scores ScoreSums::scores(const std::vector<Metric>& of) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Scores scores;
  scores.samples = static_cast<std::uint64_t>(samples);
  scores.loss = samples > 0 ? loss / samples : kNone;
  for (std::size_t m = 0; m < of.size(); ++m) {
    double value = kNone;
    if (m < metrics.size() && !metrics[m].empty() && samples > 0)
      value = of[m].value ? of[m].value(metrics[m], samples) : metrics[m][0] / samples;
    scores.metrics.emplace_back(of[m].name, value);
  }
  return scores;
}

namespace {

/// JSON has no NaN.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "inf" ? std::numeric_limits<double>::infinity()
                       : -std::numeric_limits<double>::infinity();
}

}  // namespace

std::string ScoreSums::to_json() const {
  Json sums = Json::array();
  for (const auto& metric : metrics) {
    Json values = Json::array();
    for (const double value : metric) values.push_back(number(value));
    sums.push_back(std::move(values));
  }
  return Json{{"loss", number(loss)}, {"samples", samples}, {"metrics", std::move(sums)}}.dump();
}

ScoreSums ScoreSums::parse(const std::string& text) {
  const auto json = parse_json(text);
  ScoreSums sums;
  try {
    if (!json) throw std::runtime_error("no JSON");
    sums.loss = number_of(json->at("loss"));
    sums.samples = json->at("samples").get<double>();
    for (const Json& metric : json->at("metrics")) {
      auto& values = sums.metrics.emplace_back();
      for (const Json& value : metric) values.push_back(number_of(value));
    }
  } catch (const std::exception& error) {
    throw StateError(fmt::format("sums of scores cannot be read: {}", error.what()));
  }
  return sums;
}

std::vector<double> metric_sums(const Metric& metric, const torch::Tensor& output,
                                const torch::Tensor& target, const torch::Tensor& mask) {
  const torch::NoGradGuard no_grad;
  torch::Tensor rows = metric.per_sample(output.detach(), target);
  if (rows.dim() == 0 || rows.size(0) != output.size(0))
    throw ConfigError(fmt::format("metric {}: returns {} for an output of {}", metric.name,
                                  tensor_text(rows), tensor_text(output)),
                      {}, "it must return one value, or one row of values, per sample");
  rows = rows.to(torch::kFloat64).reshape({rows.size(0), -1});
  if (mask.defined())
    rows = torch::where(mask.to(torch::kBool).view({-1, 1}), rows, torch::zeros_like(rows));
  const torch::Tensor sums = rows.sum(0).cpu().contiguous();
  const auto* const data = sums.const_data_ptr<double>();
  return {data, data + sums.numel()};
}

}  // namespace penstock::train
