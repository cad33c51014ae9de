#pragma once
// What becomes of values that are missing in a record.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/arrow.h"
#include "penstock/spec.h"

namespace penstock {

class Digest;

struct NullFill {
  bool filled = false;                 // without, a missing value fails
  std::vector<std::byte> number = {};  // one value; empty if nulls in a list still fail
  std::string text = {};

  void identify(Digest& digest) const;
};

/// Throws ConfigError, in the name of `word`, if `value` is no value of the field.
NullFill null_fill(std::string_view word, const FieldSpec& field, const NullValue& value);

/// `text` in quotes, for errors: on one line, and not all of it if it is long.
std::string excerpt(std::string_view text);

}  // namespace penstock
