#include "graph/tail.h"

#include <fmt/format.h>

#include <array>

namespace penstock {
namespace {

struct Policy {
  Tail tail;
  TailRule rule;
  std::string_view name;
  bool changes_steps;
};
constexpr std::array kPolicies{
    Policy{Tail::short_, TailRule::keep, "short", false},
    Policy{Tail::drop, TailRule::drop, "drop", true},
    Policy{Tail::even, TailRule::even, "even", true},
    Policy{Tail::pad, TailRule::pad, "pad", false},
    Policy{Tail::wrap, TailRule::wrap, "wrap", true},
    Policy{Tail::strict, TailRule::strict, "strict", false},
};

const Policy& policy(Tail tail) {
  for (const Policy& one : kPolicies)
    if (one.tail == tail) return one;
  throw ConfigError("tail: this is none of the policies", {},
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
    throw ConfigError(fmt::format("the plan has the tail policy \"{}\", which is not known", name),
                      {}, "use the same version of penstock on both sides");
  return *tail;
}

TailRule rule_of(Tail tail) {
  return policy(tail).rule;
}

Tail tail_of(TailRule rule) {
  for (const Policy& one : kPolicies)
    if (one.rule == rule) return one.tail;
  return Tail::short_;
}

bool changes_steps(Tail tail) {
  return policy(tail).changes_steps;
}

}  // namespace penstock
