#include "run/puller.h"

#include <utility>

namespace penstock {

Puller::Puller(std::shared_ptr<const PlanData> plan, PullerSettings settings, Clock& clock)
    : skips_(settings.skips),
      clock_(clock),
      sequencer_(std::move(plan), settings.pass, settings.from),
      gang_(settings.threads, std::move(settings.wake), clock),
      position_(settings.from.position),
      step_(settings.step) {}

bool Puller::pull(StepInFlight& step, const Context& context) {
  Pulling pulling{context, skips_ ? &step.failures : nullptr,
                  gang_.threads() > 1 ? &gang_ : nullptr, &clock_};
  PulledRows& rows = step.open_pulled(step_, position_);
  auto more = sequencer_.pull(rows.step, rows.after, pulling);
  if (more && !*more) {
    left_over_ = step.failures.take();
    return false;
  }
  ++step_;
  if (!more) {
    step.fail(std::move(more.failure()));
    step.set_ready();
    return true;
  }
  rows.rows = rows.step.buffer->rows(0, rows.step.rows);
  step.set_place(place_of(rows.step));
  position_ += rows.step.rows;
  return true;
}

}  // namespace penstock
