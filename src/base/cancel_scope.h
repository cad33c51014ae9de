#pragma once
// Cancellation across a user's function: a loader that the function iterates must notice that the
// result of the function is not needed any more, and no argument reaches it through user code.

#include <atomic>

namespace penstock {

/// While it exists `flag` cancels the work of the calling thread. Scopes nest.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>& flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  /// True if the innermost scope of the calling thread is cancelled.
  static bool cancelled();

 private:
  const std::atomic<bool>* const outer_;
};

}  // namespace penstock
