#pragma once
// Datasets with the users' functions that they own.

#include <utility>

#include "callee.h"
#include "penstock/dataset.h"

namespace penstock::python {

using OwningDataset = Owning<Dataset>;

/// The result of `make()`, with its own functions and those of its inputs.
template <typename Make, typename... Inputs>
OwningDataset owning(Make make, const Inputs&... inputs) {
  CalleeCollector collector;
  Dataset made = make();
  Owned owned = collector.take();
  (owned.add(inputs.owned), ...);
  return {std::move(made), std::move(owned)};
}

}  // namespace penstock::python
