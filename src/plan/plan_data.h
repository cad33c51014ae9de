#pragma once
// What stands behind a Plan.

#include <cstdint>

#include "order/geometry.h"
#include "penstock/plan.h"
#include "plan/program.h"

namespace penstock {

struct PlanData {
  PlanData(Dataset made_of, const PlanOptions& asked, std::uint64_t seed)
      : dataset(std::move(made_of)),
        options(asked),
        drawn_seed(seed),
        program(compile(*dataset.node(), {asked.tail, seed, asked.drawn_seed.has_value()})),
        geometry(program.steps) {}

  Dataset dataset;
  PlanOptions options;
  std::uint64_t drawn_seed;
  Program program;
  Geometry geometry;  // of a pass that is not resumed
};

/// What decides whether every share has samples in every step.
struct GroupsAndShares {
  Groups groups;         // N and G
  std::uint64_t shares;  // R
};

/// The largest global batch.
std::uint64_t batch_samples_of(const PlanData& plan);
/// Samples, or rows where they are padded, of the largest step: less than the batch size where
/// there are fewer samples. Of a stream, up to which memory is taken in advance.
std::uint64_t largest_step_of(const PlanData& plan);
/// Throws ConfigError where a batch node with tail=strict has a short step, or shares of different
/// sizes.
void check_strict(const PlanData& plan);
/// Throws ConfigError where a seed is drawn: `processes` that cannot tell each other would each
/// have an order of their own.
void refuse_drawn_seed(const PlanData& plan, std::uint32_t processes);

}  // namespace penstock
