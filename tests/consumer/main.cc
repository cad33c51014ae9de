// A program of another project: exits with 0 if every sample is delivered once.
#include <penstock/penstock.h>

#include <cstdint>
#include <set>

int main() {
  namespace ps = penstock;
  ps::Loader loader(ps::Dataset::range(103).shuffle({.seed = 7}).batch(16));
  std::set<std::int64_t> seen;
  std::uint64_t rows = 0;
  for (const ps::Batch& batch : loader) {
    rows += batch.rows();
    for (const std::int64_t value : batch.values<std::int64_t>()) seen.insert(value);
  }
  return rows == 103 && seen.size() == 103 && *seen.begin() == 0 && *seen.rbegin() == 102 ? 0 : 1;
}
