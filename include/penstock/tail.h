#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock {

/// What happens to the last samples when the batch size does not divide their number.
enum class Tail : std::uint8_t {
  short_,  // the last batch is short
  drop,    // the incomplete batch is dropped
  even,    // as many steps as with short_, with sizes that differ by at most one
  pad,     // every share has the same number of rows in every step; padding rows are marked
  wrap,    // the last batch is filled with samples from the start of the order
  strict,  // a plan with a short batch, or with shares of different sizes, throws ConfigError
};

/// "short", "drop", "even", "pad", "wrap" or "strict". Throws ConfigError for a value that is none
/// of them.
std::string_view tail_name(Tail tail);
/// The policy of that name, or nullopt.
std::optional<Tail> tail_named(std::string_view name);

}  // namespace penstock
