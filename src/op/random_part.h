#pragma once
// A part of random area and shape, for steps that cut it out or paint over it.

#include <optional>
#include <utility>

#include "op/image_step.h"

namespace penstock {

struct PartRules {
  std::pair<double, double> scale;  // of the area, as a fraction: low and high
  std::pair<double, double> ratio;  // of the sides: low and high
  bool upright = false;             // ratio is height over width, not width over height
  std::int64_t spare = 0;           // rows and columns that must be left beside it
};

/// The arguments "scale" and "ratio", checked.
PartRules part_rules(const StepArguments& arguments);
/// A part of an image of that size; nothing when ten draws in a row did not fit into it.
std::optional<Region> draw_part(std::int64_t width, std::int64_t height, const PartRules& rules,
                                Rng& rng);
/// A number from 0 to `room`.
std::int64_t draw_place(std::int64_t room, Rng& rng);

}  // namespace penstock
