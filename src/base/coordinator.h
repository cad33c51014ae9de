#pragma once
// What ranks must agree on, through one small interface: every exchange is one gathering of texts.
// Implementations: one process alone, and ranks that are threads of one process (both here);
// processes meet through train/process_group.h.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

/// All members but rank and world are collective: every rank calls them in the same order.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t world() const = 0;
  /// The texts of all ranks, in rank order. `word` says what for, and must be the same everywhere.
  [[nodiscard]] virtual std::vector<std::string> gather(const std::string& word,
                                                        const std::string& text) = 0;

  void barrier();
  /// Throws ConfigError naming `what` and the ranks when the values differ.
  void compare(const std::string& what, const std::string& value);
  /// The value of rank 0.
  std::uint64_t share(std::uint64_t value);
  /// The smallest value of all ranks.
  std::uint64_t agree(std::uint64_t count);
  double sum(double value);

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
