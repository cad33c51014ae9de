#pragma once

#include <memory>
#include <optional>
#include <string>

namespace penstock {

struct ScopeEntry;
struct StrategyCore;

/// Makes its strategy the current one of the thread that created it. Scopes nest and must end in
/// that thread, the last one first. The destructor never throws: it reports errors, so that an
/// exception in flight is not replaced.
class Scope {
 public:
  Scope(Scope&&) noexcept;
  Scope& operator=(Scope&&) = delete;
  ~Scope();

  /// Ends the scope. Throws ConfigError if it has ended, in another thread, or before an inner
  /// scope; in the last two cases the scope stays open.
  void leave();
  /// Like `leave`, but returns the error message instead of throwing; for use while another
  /// exception is in flight.
  [[nodiscard]] std::optional<std::string> try_leave();

 private:
  friend Scope open_scope(std::shared_ptr<StrategyCore> core);
  explicit Scope(std::shared_ptr<ScopeEntry> entry);
  std::shared_ptr<ScopeEntry> entry_;
};

}  // namespace penstock
