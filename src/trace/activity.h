#pragma once
// What a thread is doing right now, for reports about waits: which op, with which samples.

#include <atomic>
#include <cstdint>
#include <string>

namespace penstock::trace {

/// Written by the thread that works, read by whoever reports; `cancelled` the other way round.
struct Activity {
  std::atomic<bool> cancelled{false};           // what is being made is not wanted any more
  std::atomic<const std::string*> op{nullptr};  // kept alive by the plan
  std::atomic<std::uint64_t> first_sample{0};
  std::atomic<std::uint64_t> samples{0};
};

/// From now on `activity` says what the calling thread does; null for nobody. Returns the one
/// before.
Activity* set_activity(Activity* activity);
/// Notes that the calling thread enters `op` with `samples` samples from id `first_sample` on.
void doing(const std::string& op, std::uint64_t first_sample, std::uint64_t samples);
/// Notes which of these samples it is at, where that is known. False when it is not wanted any
/// more.
bool at_sample(std::uint64_t sample);
/// False when what the calling thread makes is not wanted any more.
bool still_wanted();

}  // namespace penstock::trace
