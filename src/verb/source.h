#pragma once

#include <memory>

#include "penstock/dataset.h"
#include "plan/stage.h"
#include "plan/stages.h"
#include "source/source.h"

namespace penstock {

/// A dataset that starts with `source`.
Dataset from_source(std::shared_ptr<const Source> source, const SourceOptions& options);
/// The samples of `source`.
StagePtr source_stage(std::shared_ptr<const Source> source, const ElementSpec& spec,
                      const SourcePlace& place);

}  // namespace penstock
