#pragma once
// Pulls the steps of a stream, in order. One per pass and process; whichever thread is free does
// it, one at a time.

#include <memory>
#include <optional>
#include <string>

#include "plan/cursor.h"
#include "plan/plan_data.h"

namespace penstock {

/// Where a stream goes on: nothing for its start.
struct StreamPlace {
  std::optional<Anchor> anchor = {};
  std::uint64_t position = 0;  // samples of the pass that were delivered before
  std::string next = {};       // digest of the row that must come next, where it is known
  std::uint64_t batch = 0;     // for batches of this size: a drop may pass by what comes next
};

class Sequencer {
 public:
  Sequencer(std::shared_ptr<const PlanData> plan, std::uint64_t pass, StreamPlace start);

  /// The next step, and where the stream is after it; false at the end. Throws StateError when the
  /// first row is not the one that the state promises.
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

/// A digest of who a row is and what it holds.
std::string row_digest(const BlockView& block, std::size_t row);

}  // namespace penstock
