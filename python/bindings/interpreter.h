#pragma once
// The rules between the engine's threads and the interpreter:
//   - a thread that enters the engine has released the GIL (`Unlocked`);
//   - an engine thread takes it only to call a user's function (`with_interpreter`);
//   - any thread may drop a reference to a Python object, under any lock of the engine: the next
//     holder of the GIL releases it (`hold`).
// So no thread ever waits for a lock of the engine while it holds the GIL.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cxxabi.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "base/guarded.h"
#include "penstock/error.h"

namespace penstock::python {

namespace nb = nanobind;

/// Releases the GIL while it exists. A thread that needs it back while the interpreter exits blocks
/// forever, like Python's own daemon threads: Python would end it by unwinding its stack, which C++
/// treats as an exception out of a destructor.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Holds the GIL while it exists; throws CancelledError if the interpreter is exiting.
class Locked {
 public:
  Locked();
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

/// A reference that any thread may copy and drop without the GIL.
using Held = std::shared_ptr<PyObject>;
Held hold(nb::handle object);

/// str(object), or a placeholder if that raises.
std::string text_of(nb::handle object);
/// A str; bytes that are not UTF-8 are decoded like os.fsdecode.
nb::str str_of(std::string_view text);
/// The bytes of a str, like os.fsencode.
std::string utf8_of(nb::handle text);
/// A whole number from 0 on; `word` and `name` are the function's and the argument's. Throws
/// ConfigError through penstock.arguments.
std::uint64_t whole_of(const char* word, const char* name, nb::handle value);

/// Releases dropped references; call it with the GIL held.
void give_back_held();

/// True once the interpreter has begun to exit: no Python function may be called then.
bool interpreter_ends();

/// A user's exception on its way through the engine; the object keeps its type and traceback.
struct Raised {
  Held value;
};
class UserError final : public std::runtime_error, public Raised {
 public:
  UserError(const std::string& text, Held raised)
      : std::runtime_error(text), Raised{std::move(raised)} {}
};
/// The same for an OSError, so that transient ones are retried.
class UserOsError final : public std::system_error, public Raised {
 public:
  UserOsError(int number, const std::string& text, Held raised)
      : std::system_error(number, std::generic_category(), text), Raised{std::move(raised)} {}
};

/// The same for what is not an Exception: SystemExit, KeyboardInterrupt, GeneratorExit.
class UserExit final : public std::runtime_error, public Raised, public MustRaise {
 public:
  UserExit(const std::string& text, Held raised)
      : std::runtime_error(text), Raised{std::move(raised)} {}
};

/// Throws the current Python error as one of those above.
[[noreturn]] void throw_raised(nb::python_error error);
/// Sets `raised` as Python's error, with `note` added to it.
void restore_raised(const Raised& raised, const std::string& note);
/// Throws a KeyboardInterrupt that a user's function received: it must reach the main loop even if
/// failures are skipped.
void throw_if_interrupted();
/// Throws KeyboardInterrupt, or whatever a signal handler raises, if a signal has come.
void look_for_signals();

/// Calls user code. If the interpreter exits meanwhile, the thread blocks here forever: unwinding
/// would run Python code without an interpreter.
nb::object call_user(nb::handle call, nb::handle arguments, nb::handle keywords = {});
/// True in a thread that is inside `call_user`.
bool in_user_function();

/// Calls `body` with the GIL held. Python exceptions are thrown as UserError.
template <typename Body>
auto with_interpreter(Body body) {
  const Locked locked;
  give_back_held();
  try {
    return body();
  } catch (nb::python_error& error) {
    throw_raised(std::move(error));
  }
}

/// A new Python object around a T that is constructed in place.
template <typename T, typename... Arguments>
nb::object make_object(Arguments&&... arguments) {
  nb::object object = nb::inst_alloc(nb::type<T>());
  new (nb::inst_ptr<T>(object)) T(std::forward<Arguments>(arguments)...);
  nb::inst_mark_ready(object);
  return object;
}

/// Something that runs threads and must be stopped before the interpreter exits. If it was created
/// before a fork it is useless in the child, where its threads do not exist.
class Running {
 public:
  Running();
  virtual ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  virtual void stop_threads() noexcept = 0;
};
/// True in a process that was forked while anything ran: there are no threads, and locks may be
/// held forever, so objects of the engine are neither used nor destroyed there.
bool forked_while_running();
/// Throws ConfigError in a process that was forked while anything ran.
void check_may_run();

}  // namespace penstock::python
