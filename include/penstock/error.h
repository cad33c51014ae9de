#pragma once
// The errors that penstock throws. Each says what happened, where, why and, if there is one, the
// remedy. Catch `Error` for all of them.

#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

namespace penstock {

/// Identifies one sample of a dataset: its source and its number there.
struct SampleKey {
  std::uint32_t source = 0;
  std::uint64_t number = 0;
  bool operator==(const SampleKey&) const = default;
};

/// Where something happened. Only the known fields are set.
struct Where {
  std::string dataset = {};
  std::string op = {};
  std::string field = {};
  std::string file = {};
  std::optional<SampleKey> sample = {};
  std::optional<std::uint64_t> epoch = {};
  std::optional<std::uint64_t> step = {};
  std::optional<std::uint64_t> position = {};

  /// "sample 12 of source 0, op map#1, epoch 0, step 3", or "" if nothing is set.
  [[nodiscard]] std::string text() const;
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Where where = {}, std::string remedy = {});
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] const Where& where() const { return where_; }
  [[nodiscard]] const std::string& remedy() const { return remedy_; }

 private:
  std::string message_;
  Where where_;
  std::string remedy_;
};

/// A mistake in the set-up, found before anything runs.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A state that cannot be restored: of another dataset, truncated, garbled or of a newer format.
class StateError : public Error {
 public:
  using Error::Error;
};

/// A sample that failed. `cause()` is the exception of the user's function, if there was one.
class SampleError : public Error {
 public:
  explicit SampleError(const std::string& message, Where where = {}, std::string remedy = {},
                       std::exception_ptr cause = nullptr);
  [[nodiscard]] std::exception_ptr cause() const { return cause_; }

 private:
  std::exception_ptr cause_;
};

/// Memory, threads or descriptors ran out.
class ResourceError : public Error {
 public:
  using Error::Error;
};

/// A file could not be read or written.
class IoError : public Error {
 public:
  using Error::Error;
};

/// The loader was stopped, or the replica cancelled, while this call waited.
class CancelledError : public Error {
 public:
  using Error::Error;
};

/// A bug in penstock. Please report it.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace penstock
