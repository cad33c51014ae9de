#pragma once
// The interface through which ranks agree: every exchange gathers texts. Implementations: a single
// process, and ranks that are threads of one process (both here); train/process_group.h connects
// processes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

/// The connection of one rank to the others, for StrategyOptions::coordinator.
///
/// All members but `rank` and `world` are collectives: every rank calls them in the same order, and
/// they block until all ranks have. Use a coordinator from one thread at a time. Collectives throw
/// what `gather` throws; the implementations here throw ConfigError if the ranks are in different
/// exchanges, and CancelledError if a rank has left.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  /// The number of this rank, from 0. Does not block.
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  /// The number of ranks. Does not block.
  [[nodiscard]] virtual std::uint32_t world() const = 0;
  /// Returns the texts of all ranks, in rank order. `word` identifies the exchange and must be the
  /// same on every rank.
  [[nodiscard]] virtual std::vector<std::string> gather(const std::string& word,
                                                        const std::string& text) = 0;

  /// Waits for all ranks.
  void barrier();
  /// Throws ConfigError naming `what` and the ranks if the values differ.
  void compare(const std::string& what, const std::string& value);
  /// Returns the value of rank 0.
  std::uint64_t share(std::uint64_t value);
  /// Returns the smallest value of all ranks.
  std::uint64_t agree(std::uint64_t count);
  /// Returns the sum of all values, added in rank order: the same bits on every rank.
  double sum(double value);

  /// A world of one. Thread-safe: its collectives return at once.
  static Coordinator& alone();
};

/// Ranks that are threads of this process. A wait ends with CancelledError if the
/// Coordinator of another rank is destroyed.
class LocalGroup {
 public:
  /// Throws ConfigError if `world` is 0.
  explicit LocalGroup(std::uint32_t world);
  /// The Coordinator of `rank`, for one thread; it may outlive the group. Throws ConfigError if the
  /// rank is out of range or was taken before. Thread-safe.
  std::unique_ptr<Coordinator> join(std::uint32_t rank);

 private:
  class Meeting;
  class Member;
  std::shared_ptr<Meeting> meeting_;
};

}  // namespace penstock
