#pragma once
// Which shares a loader serves when nobody named them: those of its process.

#include "penstock/loader.h"

namespace penstock {

/// With the shares that were named or, where none were, with this process's.
Plan plan_for(const Dataset& dataset, const LoaderOptions& options);
/// What is left of the options when the plan is made.
LoaderOptions without_plan(LoaderOptions options);

}  // namespace penstock
