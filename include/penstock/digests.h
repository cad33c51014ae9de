#pragma once

#include <string>

namespace penstock {

/// Hashes of a dataset. A state fits only a dataset with the same `order`; a difference in `values`
/// (functions, ops) is reported.
struct Digests {
  std::string order;
  std::string values;
  bool operator==(const Digests&) const = default;
};

}  // namespace penstock
