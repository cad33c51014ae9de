#include "graph/tail.h"

#include <fmt/format.h>

#include <array>

#include "penstock/error.h"

namespace penstock {
namespace {

struct Policy {
  Tail tail;
  std::string_view name;
  bool changes_steps;
};
constexpr std::array kPolicies{
    Policy{Tail::short_, "short", false}, Policy{Tail::drop, "drop", true},
    Policy{Tail::even, "even", true},     Policy{Tail::pad, "pad", false},
    Policy{Tail::wrap, "wrap", true},     Policy{Tail::strict, "strict", false},
};

const Policy& policy(Tail tail) {
  for (const Policy& one : kPolicies)
    if (one.tail == tail) return one;
  throw ConfigError("tail: unknown policy", {},
                    "use Tail::short_, drop, even, pad, wrap or strict");
}

}  // namespace

std::string_view tail_name(Tail tail) {
  return policy(tail).name;
}

std::optional<Tail> tail_named(std::string_view name) {
  for (const Policy& one : kPolicies)
    if (one.name == name) return one.tail;
  return std::nullopt;
}

Tail tail_parsed(std::string_view name) {
  const auto tail = tail_named(name);
  if (!tail)
    throw ConfigError(fmt::format("the plan has an unknown tail policy, \"{}\"", name), {},
                      "use the same version of penstock on both sides");
  return *tail;
}

bool changes_steps(Tail tail) {
  return policy(tail).changes_steps;
}

}  // namespace penstock
