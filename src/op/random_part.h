#pragma once
// A rectangle of random area and shape, for steps that crop it or paint over it.

#include <optional>
#include <utility>

#include "op/image_step.h"

namespace penstock {

struct PartRules {
  std::pair<double, double> scale;  // of the area, as a fraction: low and high
  std::pair<double, double> ratio;  // of the sides: low and high
  bool upright = false;             // ratio is height over width, not width over height
  std::int64_t spare = 0;           // rows and columns that must remain beside it
};

/// The arguments "scale" and "ratio", checked.
PartRules part_rules(const StepArguments& arguments);
/// A rectangle in an image of that size; nullopt if ten draws in a row did not fit.
std::optional<Region> draw_part(std::int64_t width, std::int64_t height, const PartRules& rules,
                                Rng& rng);
/// A number from 0 to `room`.
std::int64_t draw_place(std::int64_t room, Rng& rng);

}  // namespace penstock
