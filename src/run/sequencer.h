#pragma once
// Pulls the steps of a stream, in order. One per pass and process; any idle thread calls it, one at
// a time.

#include <memory>
#include <optional>
#include <string>

#include "plan/cursor.h"
#include "plan/plan_data.h"

namespace penstock {

/// Where a stream continues; the default is its start.
struct StreamPlace {
  std::optional<Anchor> anchor = {};
  std::uint64_t position = 0;  // samples of the pass delivered before
  std::string next = {};       // digest of the row that must follow, if known
  std::uint64_t batch = 0;     // the batch size `next` applies to: a drop may skip the next row
};

class Sequencer {
 public:
  Sequencer(std::shared_ptr<const PlanData> plan, std::uint64_t pass, StreamPlace start);

  /// Pulls the next step and the position after it; returns false at the end. Throws StateError if
  /// the first row is not the one recorded in the state.
  Result<bool> pull(PulledStep& step, Anchor& after, Pulling& pulling);

 private:
  Result<void> begin(Pulling& pulling);

  const std::shared_ptr<const PlanData> plan_;
  const std::uint64_t pass_;
  const StreamPlace start_;
  const std::uint64_t batch_;
  StepCursorPtr cursor_;
  bool checked_ = false;
};

/// A digest of the identity and the values of a row.
std::string row_digest(const BlockView& block, std::size_t row);

}  // namespace penstock
