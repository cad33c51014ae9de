#pragma once
// Functions that return a bool for a sample: filter, take_while, select.

#include <memory>
#include <string>

#include "op/op.h"
#include "penstock/dataset.h"
#include "plan/compiler.h"
#include "plan/cursor.h"

namespace penstock {

/// Throws ConfigError if `op` does not accept the elements of `input`.
void check_predicate(const Dataset& input, const Op& op, const char* word);

/// "filter(positive), seed=3"
std::string predicate_line(const char* word, const Op& op, std::uint64_t seed);

/// Runs `op` over rows pulled from `input`; the result is one bool each.
StagePtr pulled_predicate(Compiler& compiler, const Flow& input, std::shared_ptr<const Op> op,
                          std::uint64_t seed, const std::string& line);

/// Runs `predicate` on pulled rows. `keep` is 1 if it returned true. If it failed, `failed` is 1
/// and `keep` is 0.
Result<void> judge(const Stage& predicate, Turn turn, const BlockView& rows, std::uint8_t* keep,
                   std::uint8_t* failed, Pulling& pulling);

}  // namespace penstock
