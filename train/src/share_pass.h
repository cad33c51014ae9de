#pragma once
// One replica's part of one step: forward, loss, metrics and, in training, backward.

#include <penstock/train/layers.h>
#include <penstock/train/mirrored.h>
#include <penstock/train/model.h>

#include <optional>

#include "score_sums.h"

namespace penstock::train {

/// Which fields of a batch are inputs, target and weights.
struct FieldNames {
  std::vector<std::string> inputs;
  std::string target;  // empty if there is none
  std::string sample_weight;
};
/// Throws ConfigError that lists the fields if they are ambiguous.
FieldNames field_names(const ModelOptions& options, const ElementSpec& spec, bool needs_target);

struct SharePass {
  const ModelOptions& model;
  const CompileOptions& compiled;
  const Mirrored& copies;
  bool trains = false;
  std::uint64_t iteration = 0;
  /// Divides the loss of each sample in the backward pass.
  double divisor = 1;

  struct Result {
    ScoreSums sums;
    std::vector<std::uint64_t> not_numbers;  // samples whose loss is not a number
    torch::Tensor output;                    // if requested
  };
  /// With `scores` false only the output is computed.
  Result run(Replica& replica, const Batch& share, bool scores = true) const;

 private:
  [[nodiscard]] torch::Tensor forward(const Replica& replica, const Batch& share,
                                      const Inputs& inputs) const;
};

}  // namespace penstock::train
