#pragma once
// A batch as a Python object.

#include <utility>

#include "interpreter.h"
#include "penstock/batch.h"

namespace penstock::python {

/// Views of its fields keep it, and with it the slab, alive.
class PyBatch {
 public:
  explicit PyBatch(Batch batch) : batch_(std::move(batch)) {}
  ~PyBatch();
  PyBatch(const PyBatch&) = delete;
  PyBatch& operator=(const PyBatch&) = delete;
  [[nodiscard]] const Batch& batch() const { return batch_; }

 private:
  Batch batch_;
};

/// A new Python object for `batch`.
nb::object make_batch(Batch batch);

}  // namespace penstock::python
