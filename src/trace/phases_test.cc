#include "trace/phases.h"

#include <gtest/gtest.h>

namespace penstock::trace {
namespace {

TEST(PhasesTest, EachPhaseHasItsOwnSum) {
  const std::uint64_t read = phase_total(Phase::read);
  const std::uint64_t decode = phase_total(Phase::decode);
  add_phase(Phase::read, std::chrono::nanoseconds(7));
  add_phase(Phase::read, std::chrono::microseconds(1));
  EXPECT_EQ(phase_total(Phase::read), read + 1007);
  EXPECT_EQ(phase_total(Phase::decode), decode);
}

TEST(PhasesTest, ATimerAddsOnce) {
  const std::uint64_t before = phase_total(Phase::image);
  {
    const PhaseTimer timer(Phase::image);
  }
  const std::uint64_t after = phase_total(Phase::image);
  EXPECT_GE(after, before);
  EXPECT_EQ(phase_total(Phase::image), after);
}

}  // namespace
}  // namespace penstock::trace
