#pragma once
// Bad data is normal: a function that can fail on a sample returns a Result; run/ decides what to
// do.

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "penstock/error.h"

namespace penstock {

/// Why something failed, and where; becomes a SampleError unless it is skipped.
struct Failure {
  std::string message = {};
  Where where = {};
  std::string remedy = {};
  std::exception_ptr cause = {};
  std::size_t row = 0;     // of the block that failed
  bool row_known = true;   // false if a function failed for a block as a whole
  bool may_pass = false;   // a possibly transient I/O error
  bool try_again = false;  // like `may_pass`, but if it fails again the sample is at fault
  bool no_memory = false;
  bool must_raise = false;  // never skipped: the program is asked to end

  [[noreturn]] void raise() const { throw SampleError(message, where, remedy, cause); }
};

/// The loader was stopped before row `row` was computed; nobody will see it.
inline Failure cancelled(std::size_t row) {
  Failure failure{"the loader was stopped"};
  failure.row = row;
  return failure;
}

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
