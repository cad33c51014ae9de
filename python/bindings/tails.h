#pragma once
// Words of options that come as text.

#include <fmt/format.h>

#include <optional>
#include <string>

#include "penstock/error.h"
#include "penstock/tail.h"

namespace penstock::python {

inline std::optional<Tail> tail_of_name(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  const auto tail = tail_named(*name);
  if (!tail)
    throw ConfigError(fmt::format("tail: there is no policy \"{}\"", *name), {},
                      "use \"short\", \"even\", \"pad\", \"drop\", \"wrap\" or \"strict\"");
  return tail;
}

}  // namespace penstock::python
