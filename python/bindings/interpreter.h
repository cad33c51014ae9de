#pragma once
// The rules between the engine's threads and the interpreter:
//   - who enters the engine has let go of the interpreter lock (`Unlocked`);
//   - a thread of the engine takes it only to call a user's function (`with_interpreter`);
//   - references to Python objects may be let go on any thread, under any lock of the engine: they
//     are given back a little later by whoever holds the interpreter (`hold`).
// So no thread ever waits for a lock of the engine while it holds the interpreter's.

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

/// Lets go of the interpreter while it lives. A thread that wants it back when the interpreter ends
/// stays where it is, as Python's own daemon threads do: Python would end it by unwinding its
/// stack, which C++ takes for an exception out of a destructor.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Holds the interpreter while it lives; throws CancelledError when that ends.
class Locked {
 public:
  Locked();
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

/// A reference that any thread may copy and let go without the interpreter.
using Held = std::shared_ptr<PyObject>;
Held hold(nb::handle object);

/// str(object), or something in its place where that raises.
std::string text_of(nb::handle object);
/// A str; bytes that are not UTF-8 become what os.fsdecode makes of them.
nb::str str_of(std::string_view text);
/// The bytes of a str, as os.fsencode gives them.
std::string utf8_of(nb::handle text);
/// A whole number from 0 on; `word` and `name` are the function's and the argument's. Throws
/// ConfigError through penstock.arguments.
std::uint64_t whole_of(const char* word, const char* name, nb::handle value);

/// Gives back what was let go; called with the interpreter held.
void give_back_held();

/// True once the interpreter has begun to end: nothing of Python may be called then.
bool interpreter_ends();

/// A user's exception on its way through the engine; the object keeps type and traceback.
struct Raised {
  Held value;
};
class UserError final : public std::runtime_error, public Raised {
 public:
  UserError(const std::string& text, Held raised)
      : std::runtime_error(text), Raised{std::move(raised)} {}
};
/// The same for an OSError, so that those that may pass are tried again.
class UserOsError final : public std::system_error, public Raised {
 public:
  UserOsError(int number, const std::string& text, Held raised)
      : std::system_error(number, std::generic_category(), text), Raised{std::move(raised)} {}
};

/// The same for what is no Exception: SystemExit, KeyboardInterrupt, GeneratorExit.
class UserExit final : public std::runtime_error, public Raised, public MustRaise {
 public:
  UserExit(const std::string& text, Held raised)
      : std::runtime_error(text), Raised{std::move(raised)} {}
};

/// Throws the error that Python has set as one of those above.
[[noreturn]] void throw_raised(nb::python_error error);
/// Sets `raised` as Python's error, with `note` added to it.
void restore_raised(const Raised& raised, const std::string& note);
/// A KeyboardInterrupt that a user's function ran into must reach the main loop even where failures
/// are skipped. Throws it.
void throw_if_interrupted();
/// Throws KeyboardInterrupt, or whatever a signal handler raises, when a signal has come.
void look_for_signals();

/// `call` with arguments, for any code of the user's. When the interpreter ends meanwhile the
/// thread stays here for good: unwinding would run Python code without an interpreter.
nb::object call_user(nb::handle call, nb::handle arguments, nb::handle keywords = {});
/// True in a thread that is inside `call_user`.
bool in_user_function();

/// Calls `body` with the interpreter held. What Python raises comes out as UserError.
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

/// A new Python object around a T that is made in place.
template <typename T, typename... Arguments>
nb::object make_object(Arguments&&... arguments) {
  nb::object object = nb::inst_alloc(nb::type<T>());
  new (nb::inst_ptr<T>(object)) T(std::forward<Arguments>(arguments)...);
  nb::inst_mark_ready(object);
  return object;
}

/// What runs threads, and must be stopped before the interpreter ends. One that was made before a
/// fork is useless in the child: its threads are not there.
class Running {
 public:
  Running();
  virtual ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  virtual void stop_threads() noexcept = 0;
};
/// True in a process that was forked while anything ran: there are no threads, and locks may be
/// held by nobody, so what the engine owns is neither used nor destroyed there.
bool forked_while_running();
/// Throws ConfigError in a process that was forked while anything ran.
void check_may_run();

}  // namespace penstock::python
