#include "interpreter.h"

#include <fmt/format.h>
#include <netdb.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "areas.h"
#include "base/mutex.h"
#include "penstock/clock.h"
#include "trace/blocked.h"
#include "workers.h"

namespace penstock::python {
namespace {

std::atomic<bool> ending{false};

/// References that were dropped, until a holder of the GIL releases them.
class LostAndFound {
 public:
  void add(PyObject* object) noexcept {
    bool tell = false;
    {
      Lock lock(mutex_);
      objects_.push_back(object);
      tell = !std::exchange(told_, true);
    }
    any_.store(true, std::memory_order_release);
    // If too many calls are pending, the next call into Python releases them.
    if (tell && Py_AddPendingCall(give_back_pending, nullptr) != 0) {
      Lock lock(mutex_);
      told_ = false;
    }
  }

  void give_back() {
    if (!any_.load(std::memory_order_acquire)) return;
    std::vector<PyObject*> objects;
    {
      Lock lock(mutex_);
      any_.store(false, std::memory_order_release);
      objects.swap(objects_);
      told_ = false;
    }
    const nb::error_scope keep;  // code that runs here may raise
    for (PyObject* object : objects) Py_DECREF(object);
  }

 private:
  static int give_back_pending(void*);

  std::atomic<bool> any_{false};
  Mutex mutex_;
  std::vector<PyObject*> objects_ PENSTOCK_GUARDED_BY(mutex_);
  bool told_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

// Never destroyed: abandoned threads may return while the process exits.
LostAndFound& lost_and_found() {
  static auto* const found = new LostAndFound;
  return *found;
}

int LostAndFound::give_back_pending(void*) {
  lost_and_found().give_back();
  return 0;
}

struct RunningList {
  Mutex mutex;
  std::set<Running*> all PENSTOCK_GUARDED_BY(mutex);
};
RunningList& running() {
  static auto* const list = new RunningList;
  return *list;
}

std::atomic<int> running_count{0};
/// Forks while something ran, counted in the child.
std::atomic<int> forks_while_running{0};

/// In the child, whose other threads do not exist: take no locks here.
void in_child() {
  if (running_count.load() > 0) ++forks_while_running;
}

PyObject* pending_interrupt = nullptr;  // with the interpreter held

[[noreturn]] void park() {
  while (true) pause();
}

/// The thread that ends the interpreter, once that has begun.
std::atomic<bool> stopping{false};
pthread_t ender;

}  // namespace

Unlocked::~Unlocked() {
  if (stopping.load() && pthread_equal(pthread_self(), ender) == 0) park();
  try {
    PyEval_RestoreThread(state_);
  } catch (abi::__forced_unwind&) {
    park();
  }
}

namespace {

/// Keeps Python's thread state of an engine thread from its first call to the end of the thread.
/// Otherwise each call would create and destroy it, which takes longer than a small function, and
/// threading.local would lose its content.
class ThreadStateKeeper {
 public:
  /// Call it with the GIL held, when the thread had no thread state.
  void keep() {
    static_cast<void>(PyGILState_Ensure());
    kept_ = true;
  }
  ~ThreadStateKeeper() {
    if (!kept_ || stopping.load() || interpreter_ends()) return;
    try {
      static_cast<void>(PyGILState_Ensure());
      PyGILState_Release(PyGILState_LOCKED);  // that of keep()
      PyGILState_Release(PyGILState_UNLOCKED);
    } catch (abi::__forced_unwind&) {
      park();
    }
  }

 private:
  bool kept_ = false;
};
thread_local ThreadStateKeeper thread_state_keeper;

}  // namespace

Locked::Locked() {
  if (interpreter_ends()) throw CancelledError("the interpreter is exiting");
  try {
    const bool stranger = PyGILState_GetThisThreadState() == nullptr;
    const Nanoseconds began = Clock::real().now();
    state_ = PyGILState_Ensure();
    trace::blocked_here().lock += trace::count_between(began, Clock::real().now());
    if (stranger) thread_state_keeper.keep();
  } catch (abi::__forced_unwind&) {
    park();
  }
}

Held hold(nb::handle object) {
  return {object.inc_ref().ptr(), [](PyObject* held) {
            if (!interpreter_ends()) lost_and_found().add(held);
          }};
}

std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  Py_ssize_t size = 0;
  const char* const bytes = text.is_valid() ? PyUnicode_AsUTF8AndSize(text.ptr(), &size) : nullptr;
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
  PyErr_Clear();
  return "(no text)";
}

nb::str str_of(std::string_view text) {
  PyObject* const made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

std::string utf8_of(nb::handle text) {
  Py_ssize_t size = 0;
  if (const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size))
    return {bytes, static_cast<std::size_t>(size)};
  PyErr_Clear();
  const nb::object encoded =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!encoded.is_valid()) throw nb::python_error();
  const auto bytes = nb::borrow<nb::bytes>(encoded);
  return {bytes.c_str(), bytes.size()};
}

std::uint64_t whole_of(const char* word, const char* name, nb::handle value) {
  const nb::object check = nb::module_::import_("penstock.arguments").attr("whole");
  return nb::cast<std::uint64_t>(check(word, name, nb::borrow(value)));
}

void give_back_held() {
  lost_and_found().give_back();
}

bool interpreter_ends() {
  return ending.load() || !Py_IsInitialized();
}

namespace {

bool is_a(nb::handle value, PyObject* type) {
  return PyErr_GivenExceptionMatches(value.ptr(), type) != 0;
}

/// An attribute of an exception, which may be None; None if it does not exist.
nb::object attribute(nb::handle value, const char* name) {
  PyObject* const found = PyObject_GetAttrString(value.ptr(), name);
  if (found == nullptr) PyErr_Clear();
  return found == nullptr ? nb::none() : nb::steal(found);
}

/// The errno of an exception, by which the engine recognizes transient errors; 0 if there is none.
/// Many network exceptions have no errno: they are recognized by their type, or by their cause.
int error_number(nb::handle value, int depth = 0) {
  constexpr int kDepthMax = 8;
  if (is_a(value, PyExc_MemoryError)) return EAGAIN;
  if (!is_a(value, PyExc_OSError) || depth > kDepthMax) return 0;
  if (is_a(value, PyExc_TimeoutError)) return ETIMEDOUT;
  if (is_a(value, PyExc_ConnectionError)) return ECONNRESET;
  if (const nb::object number = attribute(value, "errno"); nb::isinstance<nb::int_>(number)) {
    // Of the machine or the network (the last one: name lookup), not of the data.
    constexpr std::array kPassing{ENOMEM, ENETDOWN, ENETRESET, EMFILE, ENFILE, EAI_AGAIN};
    const int found = nb::cast<int>(number);
    return std::ranges::find(kPassing, found) != kPassing.end() ? EAGAIN : found;
  }
  // urllib's HTTPError
  if (const nb::object code = attribute(value, "code"); nb::isinstance<nb::int_>(code)) {
    constexpr std::array kBusy{408, 425, 429, 500, 502, 503, 504};
    const int status = nb::cast<int>(code);
    return std::ranges::find(kBusy, status) != kBusy.end() ? EAGAIN : 0;
  }
  for (const char* name : {"reason", "__cause__", "__context__"}) {
    const nb::object inner = attribute(value, name);
    if (PyExceptionInstance_Check(inner.ptr()))
      if (const int found = error_number(inner, depth + 1); found != 0) return found;
  }
  return 0;
}

}  // namespace

void throw_raised(nb::python_error error) {
  nb::object value = nb::borrow(error.value());
  if (error.matches(PyExc_KeyboardInterrupt)) {
    Py_XDECREF(pending_interrupt);
    pending_interrupt = nb::object(value).release().ptr();
  }
  std::string text = text_of(value.type().attr("__name__"));
  if (const std::string said = text_of(value); !said.empty()) text += ": " + said;
  if (error.matches(PyExc_StopIteration)) {
    // Outside it would silently end the consumer's loop, as in PEP 479.
    nb::object wrapped = nb::borrow(PyExc_RuntimeError)("the function raised StopIteration");
    PyException_SetCause(wrapped.ptr(), value.inc_ref().ptr());
    throw UserError("RuntimeError: the function raised StopIteration", hold(wrapped));
  }
  if (!error.matches(PyExc_Exception)) throw UserExit(text, hold(value));
  if (const int number = error_number(value); number != 0)
    throw UserOsError(number, text, hold(value));
  throw UserError(text, hold(value));
}

void restore_raised(const Raised& raised, const std::string& note) {
  const nb::object value = nb::borrow(raised.value.get());
  if (value.ptr() == pending_interrupt) Py_CLEAR(pending_interrupt);
  if (!note.empty()) {
    try {
      if (nb::hasattr(value, "add_note")) {
        value.attr("add_note")(note);
      } else {  // before Python 3.11
        nb::list notes =
            nb::hasattr(value, "__notes__") ? nb::list(value.attr("__notes__")) : nb::list();
        notes.append(note);
        value.attr("__notes__") = notes;
      }
    } catch (const nb::python_error&) {  // an exception that accepts no notes is still raised
    }
  }
  PyErr_Restore(value.type().inc_ref().ptr(), value.inc_ref().ptr(),
                PyException_GetTraceback(value.ptr()));
}

void throw_if_interrupted() {
  if (pending_interrupt == nullptr) return;
  const nb::object value = nb::steal(std::exchange(pending_interrupt, nullptr));
  throw UserError("KeyboardInterrupt", hold(value));
}

void look_for_signals() {
  with_interpreter([] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  });
}

namespace {

thread_local int user_functions = 0;  // that this thread is in

struct InUserFunction {
  InUserFunction() { ++user_functions; }
  ~InUserFunction() { --user_functions; }
  InUserFunction(const InUserFunction&) = delete;
  InUserFunction& operator=(const InUserFunction&) = delete;
};

}  // namespace

bool in_user_function() {
  return user_functions > 0;
}

nb::object call_user(nb::handle call, nb::handle arguments, nb::handle keywords) {
  const InUserFunction here;
  try {
    PyObject* const made = PyObject_Call(call.ptr(), arguments.ptr(), keywords.ptr());
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
  } catch (abi::__forced_unwind&) {
    park();
  }
}

Running::Running() {
  ++running_count;
  Lock lock(running().mutex);
  running().all.insert(this);
}

Running::~Running() {
  --running_count;
  Lock lock(running().mutex);
  running().all.erase(this);
}

namespace {
constexpr const char* kForked =
    "this process was forked while a loader was running: its threads do not exist here";
constexpr const char* kSpawn =
    "use the loader in the process that made it (num_workers=0 around it), or start processes with "
    "multiprocessing's \"spawn\" method";
}  // namespace

bool forked_while_running() {
  return forks_while_running.load() > 0;
}

void check_may_run() {
  if (forked_while_running()) throw ConfigError(kForked, {}, kSpawn);
}

void bind_interpreter(nb::module_& module) {
  module.def(
      "error_number", [](nb::handle error) { return error_number(error); },
      "The errno of an exception; 0 if it has none.");
  pthread_atfork(nullptr, nullptr, in_child);
  module.def(
      "end_interpreter",
      [] {
        ender = pthread_self();
        stopping = true;
        if (forked_while_running()) {
          ending = true;
          return;
        }
        {
          const Unlocked unlocked;
          Lock lock(running().mutex);
          for (Running* each : running().all) each->stop_threads();
          WorkerPool::end_all();
        }
        give_back_held();
        ending = true;
      },
      "Stops everything that runs, for good. Called when the interpreter exits.");
}

}  // namespace penstock::python
