#pragma once
// Bad data is normal: a function that can fail for a sample returns a Result; run/ decides how to
// handle it.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <penstock/error.h>

namespace penstock {

/// The cause of a failure, and where it occurred; becomes a SampleError unless it is skipped.
struct Failure {
  enum class Kind : std::uint8_t {
    data,       // the sample or its function is wrong, and a retry will not help
    transient,  // an IO error that a retry may avoid
    no_memory,  // retried like `transient`; a second time it is the sample's failure
    exit,       // never skipped: the program must end
    cancelled,  // the loader was stopped; the row is not delivered
  };
  std::string message = {};
  Where where = {};
  std::string remedy = {};
  std::exception_ptr cause = {};
  std::size_t row = 0;    // of the block that failed
  bool row_known = true;  // false if a function failed for a block as a whole
  Kind kind = Kind::data;

  [[nodiscard]] bool transient() const { return kind == Kind::transient; }
  [[nodiscard]] bool cancelled() const { return kind == Kind::cancelled; }
  /// True if computing other rows is pointless.
  [[nodiscard]] bool ends_pass() const { return kind == Kind::exit || kind == Kind::cancelled; }
  /// True if no policy may skip the sample.
  [[nodiscard]] bool must_raise() const { return transient() || ends_pass(); }
  /// For a call that must not be retried.
  void make_permanent() {
    if (kind == Kind::transient) kind = Kind::data;
  }

  /// Throws this failure as a SampleError.
  [[noreturn]] void raise() const { throw SampleError(message, where, remedy, cause); }
};

/// A value, or the Failure that took its place. Not thread-safe; `*`, `->` need `ok()`, `failure()`
/// needs the opposite. With a T, reading the wrong one throws std::bad_variant_access.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  [[nodiscard]] Failure& failure() { return std::get<1>(state_); }
  [[nodiscard]] const Failure& failure() const { return std::get<1>(state_); }

 private:
  std::variant<T, Failure> state_;
};

/// Success, or a Failure.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : failure_(new Failure(std::move(failure))) {}  // NOLINT

  [[nodiscard]] bool ok() const { return failure_ == nullptr; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] Failure& failure() { return *failure_; }
  [[nodiscard]] const Failure& failure() const { return *failure_; }

 private:
  std::unique_ptr<Failure> failure_;  // One word, so that success costs nothing.
};

}  // namespace penstock
