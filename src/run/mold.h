#pragma once
// The shape of the batches of a run, and the ring they come from. Known before the run, or learned
// from its first sample.

#include <algorithm>
#include <memory>

#include "sample/batch_data.h"

namespace penstock {

struct Mold {
  std::shared_ptr<const BatchLayout> layout;
  std::shared_ptr<BatchRing> ring;
};

struct MoldFacts {
  std::size_t rows_max = 1;  // of a share
  std::size_t shares = 1;    // here
  std::shared_ptr<Allocator> allocator;
};

inline Mold make_mold(ElementSpec spec, const MoldFacts& facts) {
  constexpr std::size_t kSpareMin = 64ULL << 20;
  Mold mold;
  mold.layout = std::make_shared<BatchLayout>(std::move(spec), facts.rows_max);
  mold.ring =
      std::make_shared<BatchRing>(facts.allocator ? facts.allocator : Allocator::heap(),
                                  std::max(kSpareMin, 4 * mold.layout->bytes * facts.shares));
  return mold;
}

}  // namespace penstock
