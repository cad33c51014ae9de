#include "base/digest.h"

#include <fmt/format.h>

namespace penstock {

std::string Digest::text() const {
  return fmt::format("{:016x}", state_);
}

}  // namespace penstock
