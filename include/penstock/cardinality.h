#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// How many elements a dataset has: samples, or steps once batched. For a stream it is unknown
/// until the stream has ended, after a select() until resolve().
class Cardinality {
 public:
  static Cardinality of(std::uint64_t count) { return Cardinality(Kind::counted, count); }
  static Cardinality endless() { return Cardinality(Kind::endless, 0); }
  static Cardinality unknown() { return Cardinality(Kind::unknown, 0); }
  /// Unknown until resolve() has run the predicate of a select().
  static Cardinality undecided() { return Cardinality(Kind::undecided, 0); }
  [[nodiscard]] bool is_counted() const { return kind_ == Kind::counted; }
  [[nodiscard]] bool is_endless() const { return kind_ == Kind::endless; }
  [[nodiscard]] bool is_unknown() const { return !is_counted() && !is_endless(); }
  /// Throws ConfigError when endless or unknown.
  [[nodiscard]] std::uint64_t count() const;
  /// "12", "endless" or "unknown".
  [[nodiscard]] std::string text() const;
  bool operator==(const Cardinality&) const = default;

 private:
  enum class Kind : std::uint8_t { counted, endless, unknown, undecided };
  Cardinality(Kind kind, std::uint64_t count) : kind_(kind), count_(count) {}
  Kind kind_;
  std::uint64_t count_;
};

}  // namespace penstock
