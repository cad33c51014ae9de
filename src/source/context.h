#pragma once
// What a thread that computes rows has at hand.

#include <cstdint>
#include <string>

#include "sample/scratch.h"
#include "source/reader.h"
#include "trace/activity.h"

namespace penstock {

/// Passed down from the task to stages, sources and ops. Refers to its parts; cheap to copy.
struct Context {
  /// Temporary memory alone is enough: reads are then performed directly, and nothing cancels the
  /// work.
  Context(Scratch& memory) : scratch(memory) {}  // NOLINT(google-explicit-constructor)
  Context(Scratch& memory, Reader& reads, trace::Activity* doing_now)
      : scratch(memory), reader(reads), activity(doing_now) {}

  /// Records for reports that the thread enters `op` with `samples` samples from id `first_sample`
  /// on. What is returned measures the call until it is destroyed.
  [[nodiscard]] trace::MeasuredCall enter(const std::string& op, std::uint64_t first_sample,
                                          std::uint64_t samples) const {
    if (activity == nullptr) return {{}, op, first_sample, samples};
    activity->doing(op, first_sample, samples);
    return {activity->recorded, op, first_sample, samples};
  }
  /// Records which of these samples it works on. Returns false if the result is not needed any
  /// more.
  [[nodiscard]] bool at_sample(std::uint64_t sample) const {
    if (activity != nullptr) activity->at_sample(sample);
    return !cancelled();
  }
  /// True if the result is not needed any more. May be called often.
  [[nodiscard]] bool cancelled() const {
    return activity != nullptr && activity->cancelled.load(std::memory_order_relaxed);
  }

  Scratch& scratch;
  Reader& reader = direct_reader();
  trace::Activity* activity = nullptr;
};

}  // namespace penstock
