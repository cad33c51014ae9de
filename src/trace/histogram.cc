#include "trace/histogram.h"

#include <numeric>

namespace penstock::trace {

double percentile(const std::vector<std::uint64_t>& counts, double part) {
  const std::uint64_t all = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (all == 0) return 0;
  const double wanted = part * static_cast<double>(all);
  double seen = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    seen += static_cast<double>(counts[i]);
    last = i;
    if (seen >= wanted) break;
  }
  return middle_of_bucket(last);
}

}  // namespace penstock::trace
