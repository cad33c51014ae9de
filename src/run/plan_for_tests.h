#pragma once
// Plans and steps for the tests of this folder.

#include <cstdint>
#include <memory>
#include <utility>

#include "penstock/penstock.h"
#include "plan/plan_data.h"
#include "run/batch_shape.h"
#include "run/step_in_flight.h"

namespace penstock::testing {

inline std::shared_ptr<const PlanData> plan_of(const Dataset& dataset, Shares shares = {}) {
  PlanOptions options;
  options.shares = shares;
  return std::make_shared<PlanData>(dataset, options, 0);
}

/// Batches of one number per row.
inline BatchShape shape_of_numbers(std::size_t rows_max, std::size_t shares = 1) {
  return make_batch_shape(ElementSpec::single(Dtype::i64), {rows_max, shares, nullptr});
}

inline Place rows_at(std::uint64_t first, std::uint64_t count) {
  Place place;
  place.first = first;
  place.count = count;
  return place;
}

/// Rows with the values `first`, `first` + 1 and so on, and these ids.
inline void write_numbers(const BlockView& rows, std::uint64_t first) {
  auto* const values = reinterpret_cast<std::int64_t*>(rows.columns[0].data);
  for (std::size_t i = 0; i < rows.rows; ++i) {
    values[i] = static_cast<std::int64_t>(first + i);
    rows.identity.sample_id[i] = first + i;
  }
}

}  // namespace penstock::testing
