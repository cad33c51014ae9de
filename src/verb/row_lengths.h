#pragma once
// The lengths of the rows of a block.

#include <cstdint>
#include <optional>

#include "penstock/block.h"
#include "penstock/result.h"
#include "plan/stages.h"
#include "verb/lengths.h"

namespace penstock {

/// The rows from which `RowLengths` reads lengths: the samples, or what the function of `rule`
/// returns for them. `random_ops` is the number of random ops before.
StagePtr measured_stage(StagePtr samples, const LengthRule& rule, std::uint64_t random_ops);

class RowLengths {
 public:
  /// `rows` and `rule` must outlive it.
  RowLengths(const BlockView& rows, const LengthRule& rule);
  /// Fails if the row has no length.
  Result<std::uint32_t> operator[](std::size_t row) const;

 private:
  [[nodiscard]] Result<std::uint32_t> measured(std::size_t row) const;

  const BlockView& rows_;
  const LengthRule& rule_;
  std::optional<std::size_t> index_;  // of the field, if the rows have columns
};

/// Throws ConfigError if samples of `spec` have no such field, or it has no length.
void check_length_field(const char* word, const LengthRule& rule, const ElementSpec& spec);

}  // namespace penstock
