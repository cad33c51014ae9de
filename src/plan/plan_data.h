#pragma once
// The private data of a Plan.

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
  Geometry geometry;  // of a pass that was not resumed
};

/// The sizes that decide whether every share has samples in every step.
struct GroupsAndShares {
  Groups groups;         // N and G
  std::uint64_t shares;  // R
};

/// The largest global batch.
std::uint64_t batch_samples_of(const PlanData& plan);
/// Samples (rows if padded) of the largest step: less than the batch size if there are fewer
/// samples. For a stream, the number of rows for which memory is reserved in advance.
std::uint64_t largest_step_of(const PlanData& plan);
/// Throws ConfigError if a batch node with tail=strict has a short step, or shares of different
/// sizes.
void check_strict(const PlanData& plan);
/// Throws ConfigError for random seeds: `processes` that cannot communicate would each draw another
/// one.
void refuse_drawn_seed(const PlanData& plan, std::uint32_t processes);

}  // namespace penstock
