#pragma once
// A user's function that builds a batch from a list of samples.

#include <memory>
#include <optional>
#include <string>

#include "interpreter.h"
#include "op/op.h"
#include "workers.h"

namespace penstock::python {

/// Runs in the processes of `pool`, if there is one. Without `spec` the first batch determines it.
std::shared_ptr<const Op> collate_op(nb::handle fn, const std::string& name,
                                     const std::optional<ElementSpec>& spec,
                                     std::shared_ptr<WorkerPool> pool);

}  // namespace penstock::python
