#pragma once
// Scores as sums over samples, which can be added over steps, replicas and processes.

#include <penstock/train/callback.h>
#include <penstock/train/metric.h>
#include <penstock/train/process_group.h>

#include <string>
#include <vector>

namespace penstock::train {

struct ScoreSums {
  double loss = 0;
  double samples = 0;
  std::vector<std::vector<double>> metrics;  // by metric, one or more sums

  void add(const ScoreSums& other);
  /// Over all processes; `group` may be null.
  [[nodiscard]] ScoreSums over(ProcessGroup* group) const;
  [[nodiscard]] Scores scores(const std::vector<Metric>& of) const;
  [[nodiscard]] std::string to_json() const;
  static ScoreSums parse(const std::string& text);
};

/// The sums of `metric` over the rows where `mask` (undefined: all) is 1.
std::vector<double> metric_sums(const Metric& metric, const torch::Tensor& output,
                                const torch::Tensor& target, const torch::Tensor& mask);

}  // namespace penstock::train
