#pragma once
// For tests: streams of the numbers from 0 on, and cursors driven by hand.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "penstock/dataset.h"
#include "plan/cursor.h"

namespace penstock {

/// 0, 1, .. from a generator that is pulled again from its start, and throws at `bad`.
inline Dataset generated(std::int64_t count, std::int64_t bad = -1) {
  return Dataset::from_generator(
      [count, bad] {
        return [i = std::int64_t{0}, count, bad]() mutable -> std::optional<std::int64_t> {
          if (i == bad) throw std::runtime_error("no more paper");
          if (i == count) return std::nullopt;
          return i++;
        };
      },
      {.name = "printer"});
}

/// The same from one with save() and restore(), whose cursor is not text.
struct Counter {
  std::int64_t count = 0;
  std::int64_t next = 0;
  std::optional<std::int64_t> operator()() {
    if (next == count) return std::nullopt;
    return next++;
  }
  [[nodiscard]] std::string save() const { return "\xff" + std::to_string(next); }
  void restore(const std::string& text) { next = std::stoll(text.substr(1)); }
};
inline Dataset counted(std::int64_t count) {
  return Dataset::from_generator([count] { return Counter{count}; });
}

template <typename Any>  // Cursor or StepCursor
Anchor saved(Any& cursor) {
  Anchor anchor;
  cursor.save(anchor);
  return anchor;
}
template <typename Any>
void restore(Any& cursor, const Anchor& anchor, Pulling pulling) {
  AnchorReader reader(anchor);
  auto done = cursor.restore(reader, pulling);
  if (!done) done.failure().raise();
}

}  // namespace penstock
