#pragma once
// What losses and metrics share.

#include <penstock/train/tensors.h>

namespace penstock::train {

/// A label that names no class, and the row it stands in: the trainer adds which sample that is.
class LabelError : public std::out_of_range {
 public:
  LabelError(const std::string& what, std::int64_t row) : std::out_of_range(what), row_(row) {}
  [[nodiscard]] std::int64_t row() const { return row_; }

 private:
  std::int64_t row_;
};

/// `target` as torch wants classes by number (i64), checked against the number of classes: the
/// kernel would read outside its memory. Throws ConfigError where the shapes do not fit and
/// LabelError for the first label out of range.
torch::Tensor class_labels(const char* word, const torch::Tensor& output,
                           const torch::Tensor& target);

/// The mean over everything but the rows.
inline torch::Tensor row_means(const torch::Tensor& values) {
  return values.dim() <= 1 ? values : values.flatten(1).mean(1);
}

}  // namespace penstock::train
