#pragma once
// What ranks must agree on, through one small interface. Implementations: one process (here);
// a process group comes with training.

#include <cstdint>
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

}  // namespace penstock
