#pragma once
// Which shares a loader serves if the program does not pass them: those of its process.

#include <atomic>
#include <optional>
#include <string>

#include "base/report.h"
#include "base/world.h"
#include "feed/epoch_loop.h"
#include "penstock/loader.h"

namespace penstock {

/// With the given shares or, if there are none, with those of this process.
Plan plan_for(const Dataset& dataset, const LoaderOptions& options);
/// The options without those that the plan uses.
LoaderOptions without_plan(LoaderOptions options);

/// The world whose rank determines the shares of a loader, unless the program passed shares.
std::optional<World> own_world(const LoaderOptions& options);
/// The line that rank 0 prints about its shares; empty on other ranks, and with one process.
std::string own_shares_text(const Plan& plan, const World& world);

/// Prints one line when the first epoch of a loader starts: in a program of several processes, a
/// loader that is used only on rank 0 would silently skip the samples of the others.
class OwnSharesNotice {
 public:
  /// Must be called before any iterator runs.
  void announce(std::string text) { text_ = std::move(text); }
  void epoch_begins() {
    if (!text_.empty() && !said_.exchange(true)) report(text_);
  }

 private:
  std::string text_;
  std::atomic<bool> said_{false};
};

/// State shared by a loader and all its iterators.
struct LoaderWatch {
  OneBatchWatch loops;
  OwnSharesNotice shares;
};

}  // namespace penstock
