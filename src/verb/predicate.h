#pragma once
// Functions that say yes or no about a sample: filter, take_while, select.

#include <memory>
#include <string>

#include "op/op.h"
#include "penstock/dataset.h"
#include "plan/compiler.h"
#include "plan/cursor.h"

namespace penstock {

/// Throws ConfigError where `op` cannot judge the elements of `input`.
void check_predicate(const Dataset& input, const Op& op, const char* word);

/// "filter(positive), seed=3"
std::string predicate_line(const char* word, const Op& op, std::uint64_t seed);

/// `op` over rows that were pulled from `input`, as one bool each.
StagePtr pulled_predicate(Compiler& compiler, const Flow& input, std::shared_ptr<const Op> op,
                          std::uint64_t seed, const std::string& line);

/// Asks `predicate` about pulled rows. `keep` is 1 where it holds; `failed` is 1, and `keep` 0,
/// where it could not be computed.
Result<void> judge(const Stage& predicate, Turn turn, const BlockView& rows, std::uint8_t* keep,
                   std::uint8_t* failed, Pulling& pulling);

}  // namespace penstock
