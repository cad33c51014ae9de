#pragma once
// Stages that several verbs use.

#include <memory>
#include <string>

#include "op/op.h"
#include "plan/stage.h"

namespace penstock {

/// The number of ids reserved for elements that are numbered as they are pulled.
inline constexpr std::uint64_t kStreamIds = 1ULL << 48;

struct SourcePlace {
  std::uint32_t ordinal = 0;
  std::uint64_t first_id = 0;
};

/// Rows pulled from a stream, unchanged.
StagePtr pulled_stage(const ElementSpec& spec, IdSpace ids);

struct MapPlace {
  std::string title;  // "map#1", in errors
  std::uint64_t seed = 0;
  std::uint64_t ordinal = 0;  // among random ops
};
StagePtr map_stage(StagePtr input, std::shared_ptr<const Op> op, const ElementSpec& spec,
                   MapPlace place);

}  // namespace penstock
