#pragma once
// Calls a user's function and turns its exceptions into Failures.

#include <fmt/format.h>

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>

#include "penstock/result.h"

namespace penstock {

/// True for errors of the operating system that may be transient.
inline bool may_pass(const std::error_code& code) {
  if (code.category() != std::generic_category() && code.category() != std::system_category())
    return false;
  switch (code.value()) {
    case EIO:
    case EAGAIN:
    case EINTR:
    case EBUSY:
    case ETIMEDOUT:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

/// No memory for one sample: the sample may be too large, or other work may use the memory. So it
/// is retried, and then handled like any other bad sample.
inline Failure no_memory(std::size_t row) {
  Failure failure{"there was not enough memory to compute the sample",
                  {},
                  "remove samples of this size, or give the process more memory",
                  std::current_exception(),
                  row};
  failure.kind = Failure::Kind::no_memory;
  return failure;
}

/// An exception that ends the run whatever `on_error` says, such as Python's SystemExit.
class MustRaise {
 public:
  MustRaise() = default;
  MustRaise(const MustRaise&) = default;
  MustRaise& operator=(const MustRaise&) = default;
  virtual ~MustRaise() = default;
};

/// Calls `body`; an exception becomes a Failure of row `row()`.
template <typename Body, typename Row>
Result<void> guarded(Body body, Row row) {
  try {
    body();
    return {};
  } catch (const std::system_error& error) {
    Failure failure{fmt::format("the function threw: {}", error.what()),
                    {},
                    {},
                    std::current_exception(),
                    row()};
    if (may_pass(error.code())) failure.kind = Failure::Kind::transient;
    if (error.code() == std::errc::not_enough_memory) failure.kind = Failure::Kind::no_memory;
    return failure;
  } catch (const std::bad_alloc&) {
    return no_memory(row());
  } catch (const std::exception& error) {
    Failure failure{fmt::format("the function threw: {}", error.what()),
                    {},
                    {},
                    std::current_exception(),
                    row()};
    if (dynamic_cast<const MustRaise*>(&error) != nullptr) failure.kind = Failure::Kind::exit;
    return failure;
  } catch (...) {
    return Failure{"the function threw", {}, {}, std::current_exception(), row()};
  }
}

}  // namespace penstock
