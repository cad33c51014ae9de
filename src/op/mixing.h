#pragma once
// Shared by mixup and cutmix: which rows are mixed, and how much.

#include <fmt/format.h>

#include "base/json.h"
#include "op/op.h"
#include "penstock/image.h"

namespace penstock {

/// A random op of whole batches that mixes f32 images and f32 labels of two rows.
class MixingOp : public Op {
 public:
  MixingOp(std::string word, const Json& arguments);
  [[nodiscard]] std::string word() const override { return word_; }
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] Json arguments() const override { return arguments_; }
  [[nodiscard]] std::uint64_t seed() const override { return seed_; }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] bool row_wise() const override { return false; }
  [[nodiscard]] bool draws_by_row() const override { return true; }
  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override;
  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override;

 protected:
  struct Pair {
    const float* own;
    const float* partner;
    float* out;
    const Shape& shape;
  };
  /// Mixes one image with ratio `share`; returns the ratio that it kept.
  virtual double mix(const Pair& pair, double share, Rng& rng) const = 0;

 private:
  std::string word_;
  Json arguments_;
  double alpha_ = 1;
  double chance_ = 1;
  std::uint64_t seed_ = 0;
  std::string image_;
  std::string label_;
};

Json mixing_arguments(const image::MixOptions& options);

}  // namespace penstock
