#pragma once
// Functions that run in worker processes, as ops of the engine.

#include <memory>
#include <utility>

#include "op/op.h"
#include "workers.h"

namespace penstock::python {

/// What an op that may have worker processes is found by.
class HasWorkerPool {
 public:
  explicit HasWorkerPool(std::shared_ptr<WorkerPool> pool) : pool_(std::move(pool)) {}
  virtual ~HasWorkerPool() = default;
  /// Null: none.
  [[nodiscard]] const std::shared_ptr<WorkerPool>& pool() const { return pool_; }

 private:
  std::shared_ptr<WorkerPool> pool_;
};

/// `local`, a function of samples, in the processes of `pool`. Where everything is to run in this
/// process (`InThisProcess`) `local` is called.
std::shared_ptr<const Op> worker_sample_op(std::shared_ptr<const Op> local,
                                           std::shared_ptr<WorkerPool> pool);
/// The same for a function of arrays of rows.
std::shared_ptr<const Op> worker_vector_op(std::shared_ptr<const Op> local,
                                           std::shared_ptr<WorkerPool> pool);

}  // namespace penstock::python
