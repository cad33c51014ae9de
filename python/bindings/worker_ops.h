#pragma once
// Functions that run in worker processes, as ops of the engine.

#include <memory>

#include "op/op.h"
#include "workers.h"

namespace penstock::python {

/// `local`, a function of samples, in the processes of `team`. Where everything is to run in this
/// process (`InThisProcess`) `local` is called.
std::shared_ptr<const Op> worker_sample_op(std::shared_ptr<const Op> local,
                                           std::shared_ptr<Team> team);
/// The same for a function of arrays of rows.
std::shared_ptr<const Op> worker_vector_op(std::shared_ptr<const Op> local,
                                           std::shared_ptr<Team> team);

}  // namespace penstock::python
