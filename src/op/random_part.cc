// tested in src/op/image_ops_test.cc
#include "op/random_part.h"

#include <cmath>

namespace penstock {

PartRules part_rules(const StepArguments& arguments) {
  const PartRules rules{.scale = arguments.range("scale"), .ratio = arguments.range("ratio")};
  if (rules.scale.first <= 0 || rules.scale.second > 1)
    arguments.refuse(fmt::format("scale must be in (0, 1], got {} to {}", rules.scale.first,
                                 rules.scale.second));
  if (rules.ratio.first <= 0)
    arguments.refuse(fmt::format("ratio must be positive, got {}", rules.ratio.first));
  return rules;
}

std::int64_t draw_place(std::int64_t room, Rng& rng) {
  return static_cast<std::int64_t>(rng.integer(static_cast<std::uint64_t>(room) + 1));
}

std::optional<Region> draw_part(std::int64_t width, std::int64_t height, const PartRules& rules,
                                Rng& rng) {
  constexpr int kTries = 10;
  const double area = static_cast<double>(width) * static_cast<double>(height);
  for (int i = 0; i < kTries; ++i) {
    const double wanted = area * rng.uniform(rules.scale.first, rules.scale.second);
    const double ratio =
        std::exp(rng.uniform(std::log(rules.ratio.first), std::log(rules.ratio.second)));
    Region part;
    part.width = std::lround(std::sqrt(rules.upright ? wanted / ratio : wanted * ratio));
    part.height = std::lround(std::sqrt(rules.upright ? wanted * ratio : wanted / ratio));
    if (part.width < 1 || part.height < 1 || part.width > width - rules.spare ||
        part.height > height - rules.spare)
      continue;
    part.y = draw_place(height - part.height, rng);
    part.x = draw_place(width - part.width, rng);
    return part;
  }
  return std::nullopt;
}

}  // namespace penstock
