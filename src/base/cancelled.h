#pragma once

#include <cstddef>

#include "penstock/result.h"

namespace penstock {

/// The loader was stopped before row `row` was computed; nobody will see it.
inline Failure cancelled(std::size_t row) {
  Failure failure{"the loader was stopped"};
  failure.row = row;
  failure.kind = Failure::Kind::cancelled;
  return failure;
}

}  // namespace penstock
