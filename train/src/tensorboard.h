#pragma once

#include <penstock/train/callback.h>

#include <string>

namespace penstock::train {

std::string version_event(double wall_time);
std::string scalar_event(double wall_time, std::uint64_t step, const std::string& tag,
                         double value);
/// An event with its length and checksums.
std::string event_record(const std::string& event);

}  // namespace penstock::train
