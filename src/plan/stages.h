#pragma once
// The kinds of stages, one maker each.

#include <memory>
#include <string>
#include <vector>

#include "base/random_key.h"
#include "op/op.h"
#include "order/chosen.h"
#include "plan/stage.h"
#include "sample/row_store.h"
#include "source/source.h"

namespace penstock {

struct SourcePlace {
  std::uint32_t ordinal = 0;
  std::uint64_t first_id = 0;
};
StagePtr source_stage(std::shared_ptr<const Source> source, const ElementSpec& spec,
                      SourcePlace place);

/// Rows that were pulled from a stream, as they are.
StagePtr pulled_stage(const ElementSpec& spec, IdSpace ids);

struct MapPlace {
  std::string title;  // "map#1", in errors
  std::uint64_t seed = 0;
  std::uint64_t ordinal = 0;  // among random ops
};
StagePtr map_stage(StagePtr input, std::shared_ptr<const Op> op, const ElementSpec& spec,
                   MapPlace place);

/// Marks the rows for which `op` gives false; they keep their place.
StagePtr mask_stage(StagePtr input, std::shared_ptr<const Op> op, MapPlace place);

/// Elements first + stride * p of the input.
StagePtr stride_stage(StagePtr input, std::uint64_t first, std::uint64_t stride);
StagePtr shuffle_stage(StagePtr input, std::uint64_t size, StepShuffle order);
/// Windows of `window` elements, each permuted in itself; `size` or kEndless.
StagePtr window_stage(StagePtr input, std::uint64_t size, std::uint64_t window, StepShuffle order);
/// The elements that were chosen.
StagePtr select_stage(StagePtr input, std::shared_ptr<const Chosen> chosen);
/// Rounds of `size` elements each; `rounds` as in Turn (kEndlessRounds for ever).
StagePtr repeat_stage(StagePtr input, std::uint64_t size, std::uint64_t rounds);
/// Part i has the positions up to ends[i], which is kEndless where it, or one before it, is
/// endless.
StagePtr concatenate_stage(std::vector<StagePtr> parts, std::vector<std::uint64_t> ends,
                           const ElementSpec& spec);
StagePtr zip_stage(std::vector<StagePtr> parts, const ElementSpec& spec);
StagePtr enumerate_stage(StagePtr input, const ElementSpec& spec);
/// What the first turn gave, kept in `store`; `rounds` of repeats lie below.
StagePtr cache_stage(StagePtr input, std::shared_ptr<RowStore> store, std::uint64_t rounds);
/// The samples of steps in order; `leaves[i]` makes the samples of batch node i.
StagePtr unbatch_stage(std::vector<StagePtr> leaves, Steps steps, const ElementSpec& spec);

}  // namespace penstock
