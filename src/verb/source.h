#pragma once

#include <memory>

#include "penstock/dataset.h"
#include "source/source.h"

namespace penstock {

/// A dataset that starts with `source`.
Dataset from_source(std::shared_ptr<const Source> source, const SourceOptions& options);

}  // namespace penstock
