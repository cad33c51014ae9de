#pragma once
// Steps that draw one factor from a range.

#include <utility>
#include <vector>

#include "op/image_step.h"

namespace penstock {

class RandomFactor : public ImageStep {
 public:
  explicit RandomFactor(const StepArguments& arguments)
      : factor_(arguments.number("low"), arguments.number("high")) {
    if (factor_.first < 0 || factor_.first > factor_.second)
      arguments.refuse(fmt::format("low and high must be in order and not negative, got {} and {}",
                                   factor_.first, factor_.second));
    if (factor_.first == 1 && factor_.second == 1)
      arguments.refuse("a factor of 1 changes nothing");
  }
  [[nodiscard]] bool random() const final { return true; }

  static std::vector<StepParameter> parameters() {
    return {{"low", nullptr, "smallest factor"},
            {"high", nullptr, "largest factor; 1 is no change"}};
  }

 protected:
  [[nodiscard]] double draw(Rng& rng) const { return rng.uniform(factor_.first, factor_.second); }

 private:
  std::pair<double, double> factor_;
};

}  // namespace penstock
