#pragma once
// What ranks must agree on, through one small interface. Implementations: one process alone, and
// ranks that are threads of one process (both here); a process group comes with training.

#include <cstdint>
#include <memory>
#include <string>

namespace penstock {

/// All members are collective: every rank calls them in the same order.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t world() const = 0;
  virtual void barrier() = 0;
  /// Throws ConfigError naming `what` and the ranks when the values differ.
  virtual void compare(const std::string& what, const std::string& value) = 0;
  /// The value of rank 0.
  virtual std::uint64_t share(std::uint64_t value) = 0;
  /// The smallest value of all ranks.
  virtual std::uint64_t agree(std::uint64_t count) = 0;
  virtual double sum(double value) = 0;

  /// A world of one.
  static Coordinator& alone();
};

/// Ranks that are threads of this process. A wait ends with CancelledError when a rank's
/// Coordinator is destroyed: it will not come any more.
class LocalGroup {
 public:
  /// Throws ConfigError for a world of no rank.
  explicit LocalGroup(std::uint32_t world);
  /// The Coordinator of `rank`, for one thread. Throws ConfigError when the rank is out of range or
  /// was given before.
  std::unique_ptr<Coordinator> join(std::uint32_t rank);

 private:
  class Meeting;
  class Member;
  std::shared_ptr<Meeting> meeting_;
};

}  // namespace penstock
