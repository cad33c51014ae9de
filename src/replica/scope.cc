#include "replica/scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fault.h"
#include "base/report.h"
#include "replica/core.h"

namespace penstock {
namespace {

/// The open scopes of this thread, the innermost last. Another thread cannot remove an entry: it
/// marks the entry closed, and the entry is removed when it is on top.
thread_local std::vector<std::shared_ptr<ScopeEntry>> open_scopes;

void drop_closed() {
  while (!open_scopes.empty() && !open_scopes.back()->open) open_scopes.pop_back();
}

}  // namespace

Scope open_scope(std::shared_ptr<StrategyCore> core) {
  auto entry = std::make_shared<ScopeEntry>();
  entry->core = std::move(core);
  drop_closed();
  open_scopes.push_back(entry);
  return Scope(std::move(entry));
}

StrategyCore* current_core() {
  drop_closed();
  return open_scopes.empty() ? nullptr : open_scopes.back()->core.get();
}

Scope::Scope(std::shared_ptr<ScopeEntry> entry) : entry_(std::move(entry)) {}
Scope::Scope(Scope&&) noexcept = default;

Scope::~Scope() {
  if (!entry_ || !entry_->open) return;
  try {
    const auto wrong = try_leave();
    // In any case the scope ends with the object.
    entry_->open = false;
    if (wrong) report(*wrong);
  } catch (...) {
    // Out of memory for the message; the user's own error matters more.
    entry_->open = false;
  }
}

std::optional<std::string> Scope::try_leave() {
  if (!entry_) return "scope: this object was moved from; leave the object it was moved to";
  const std::string name = fmt::format("scope of {}", entry_->core->name());
  if (!entry_->open) return fmt::format("{}: left twice -> leave it once", name);
  drop_closed();
  const auto found = std::ranges::find(open_scopes, entry_);
  if (found == open_scopes.end())
    return fmt::format(
        "{}: left in another thread than the one that entered it, where it is still the current "
        "one -> leave it in the thread that entered it",
        name);
  if (entry_ != open_scopes.back() && !PENSTOCK_OFF("scope.order"))
    return fmt::format(
        "{}: left out of order: the scope of {} was entered inside it and is still open -> leave "
        "the inner one first",
        name, open_scopes.back()->core->name());
  entry_->open = false;
  open_scopes.pop_back();
  return std::nullopt;
}

void Scope::leave() {
  if (const auto wrong = try_leave()) throw ConfigError(*wrong);
}

}  // namespace penstock
