#pragma once
// Which shares a loader serves when nobody named them: those of its process.

#include <atomic>
#include <optional>
#include <string>

#include "base/report.h"
#include "base/world.h"
#include "feed/one_batch.h"
#include "penstock/loader.h"

namespace penstock {

/// With the shares that were named or, where none were, with this process's.
Plan plan_for(const Dataset& dataset, const LoaderOptions& options);
/// What is left of the options when the plan is made.
LoaderOptions without_plan(LoaderOptions options);

/// The world whose rank decides what a loader serves, unless the program named the shares.
std::optional<World> own_world(const LoaderOptions& options);
/// What rank 0 prints about it; empty on other ranks, and where there is one process.
std::string own_shares_text(const Plan& plan, const World& world);

/// Prints one line when the first epoch of a loader begins: in a program of several processes a
/// loader that is used on rank 0 alone would silently leave out the samples of the others.
class OwnSharesNotice {
 public:
  /// Before any iterator runs.
  void announce(std::string text) { text_ = std::move(text); }
  void epoch_begins() {
    if (!text_.empty() && !said_.exchange(true)) report(text_);
  }

 private:
  std::string text_;
  std::atomic<bool> said_{false};
};

/// What a loader and all its iterators watch together.
struct LoaderWatch {
  OneBatchWatch loops;
  OwnSharesNotice shares;
};

}  // namespace penstock
