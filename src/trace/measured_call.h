#pragma once
// Measures what ops take.

#include <cstdint>
#include <string>

#include "penstock/clock.h"
#include "trace/blocked.h"

namespace penstock::trace {

class Recorder;
struct OpTotals;

/// Whose work a thread does: null if nothing is recorded.
struct Recorded {
  Recorder* recorder = nullptr;
  std::uint64_t step = 0;
};

/// Measures one call of an op, from construction to destruction. A short op is measured in one of
/// 16 calls.
class MeasuredCall {
 public:
  MeasuredCall(const Recorded& work, const std::string& title, std::uint64_t sample,
               std::uint64_t rows);
  ~MeasuredCall();
  MeasuredCall(const MeasuredCall&) = delete;
  MeasuredCall& operator=(const MeasuredCall&) = delete;

  /// Adds the size of the result.
  void made(std::uint64_t bytes) const;

 private:
  void end();

  const Recorded work_;
  const std::uint64_t sample_;
  const std::uint64_t rows_;
  OpTotals* totals_ = nullptr;
  bool measured_ = false;
  Nanoseconds began_{0};
  bool with_cpu_ = false;
  std::uint64_t cpu_before_ = 0;
  Blocked before_;
};

}  // namespace penstock::trace
