#pragma once
// Shared by losses and metrics.

#include <penstock/train/tensors.h>

namespace penstock::train {

/// A label that is not a class, and its row: the trainer adds the sample.
class LabelError : public std::out_of_range {
 public:
  LabelError(const std::string& what, std::int64_t row) : std::out_of_range(what), row_(row) {}
  [[nodiscard]] std::int64_t row() const { return row_; }

 private:
  std::int64_t row_;
};

/// `target` as class numbers (i64), as torch needs them, checked against the number of classes: the
/// kernel would read outside its memory. Throws ConfigError if the shapes do not fit and LabelError
/// for the first label out of range.
torch::Tensor class_labels(const char* word, const torch::Tensor& output,
                           const torch::Tensor& target);

/// The mean over everything but the rows.
inline torch::Tensor row_means(const torch::Tensor& values) {
  return values.dim() <= 1 ? values : values.flatten(1).mean(1);
}

}  // namespace penstock::train
