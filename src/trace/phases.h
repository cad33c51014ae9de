#pragma once
// The time spent in image ops, summed over all threads of the process since its start. Reads the
// clock twice per image and phase: well under a thousandth of a decode.

#include <chrono>
#include <cstdint>

namespace penstock::trace {

enum class Phase : std::uint8_t {
  read,    // bytes of files
  decode,  // bytes to pixels
  image,   // a whole chain of image ops, including decode
};
inline constexpr std::size_t kPhases = 3;

/// Nanoseconds so far.
std::uint64_t phase_total(Phase phase);
void add_phase(Phase phase, std::chrono::nanoseconds took);

/// Measures from construction to destruction.
class PhaseTimer {
 public:
  explicit PhaseTimer(Phase phase) : phase_(phase), start_(std::chrono::steady_clock::now()) {}
  ~PhaseTimer() { add_phase(phase_, std::chrono::steady_clock::now() - start_); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  Phase phase_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace penstock::trace
