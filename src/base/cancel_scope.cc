#include "base/cancel_scope.h"

#include <utility>

namespace penstock {
namespace {

thread_local const std::atomic<bool>* innermost = nullptr;

}  // namespace

CancelScope::CancelScope(const std::atomic<bool>& flag) : outer_(std::exchange(innermost, &flag)) {}

CancelScope::~CancelScope() {
  innermost = outer_;
}

bool CancelScope::cancelled() {
  return innermost != nullptr && innermost->load(std::memory_order_relaxed);
}

}  // namespace penstock
