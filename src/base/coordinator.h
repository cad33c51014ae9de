#pragma once
// The interface through which ranks agree: every exchange gathers texts. Implementations: a single
// process, and ranks that are threads of one process (both here); train/process_group.h connects
// processes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

/// All members but rank and world are collectives: every rank calls them in the same order.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t world() const = 0;
  /// Returns the texts of all ranks, in rank order. `word` identifies the exchange and must be the
  /// same on every rank.
  [[nodiscard]] virtual std::vector<std::string> gather(const std::string& word,
                                                        const std::string& text) = 0;

  void barrier();
  /// Throws ConfigError naming `what` and the ranks if the values differ.
  void compare(const std::string& what, const std::string& value);
  /// Returns the value of rank 0.
  std::uint64_t share(std::uint64_t value);
  /// Returns the smallest value of all ranks.
  std::uint64_t agree(std::uint64_t count);
  double sum(double value);

  /// A world of one.
  static Coordinator& alone();
};

/// Ranks that are threads of this process. A wait ends with CancelledError if the Coordinator of
/// another rank is destroyed.
class LocalGroup {
 public:
  /// Throws ConfigError if `world` is 0.
  explicit LocalGroup(std::uint32_t world);
  /// The Coordinator of `rank`, for one thread. Throws ConfigError if the rank is out of range or
  /// was taken before.
  std::unique_ptr<Coordinator> join(std::uint32_t rank);

 private:
  class Meeting;
  class Member;
  std::shared_ptr<Meeting> meeting_;
};

}  // namespace penstock
