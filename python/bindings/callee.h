#pragma once
// Users' functions as datasets hold them: owned by Python objects alone, so that Python's garbage
// collector sees every reference. An object that keeps a loader of its own method is a cycle; a
// reference inside the engine would keep it alive for ever.

#include <memory>
#include <utility>
#include <vector>

#include "interpreter.h"

namespace penstock::python {

/// A function, or another object, that the engine calls. Copies are the same one. It is gone when
/// the last Python object that owned it is: nobody is left then to ask for what it would make.
class Callee {
 public:
  /// Called with the interpreter held, by who has a reference. Whoever collects owns it from now
  /// on.
  explicit Callee(nb::handle object);
  /// With the interpreter held; throws CancelledError when it is gone.
  [[nodiscard]] nb::object get() const;
  [[nodiscard]] bool gone() const { return shared_->object == nullptr; }

 private:
  friend class Owned;
  struct Shared {
    PyObject* object = nullptr;
    std::size_t owners = 0;
    Held pinned;  // a reference of the engine's own, if it has one
  };
  std::shared_ptr<Shared> shared_;
};

/// What a Python object owns. Each copy has references of its own. With the interpreter held.
class Owned {
 public:
  Owned() = default;
  Owned(const Owned& other) { add(other); }
  Owned(Owned&& other) noexcept : all_(std::exchange(other.all_, {})) {}
  Owned& operator=(Owned other) noexcept {
    all_.swap(other.all_);
    return *this;
  }
  ~Owned() { clear(); }
  void add(const Callee& callee);
  void add(const Owned& other);
  void clear() noexcept;
  /// From now on the engine keeps them as well: for datasets that only it has.
  void pin() const;
  /// For tp_traverse.
  int traverse(visitproc visit, void* arg) const;

 private:
  std::vector<Callee> all_;
};

/// While it lives, it collects the Callees that this thread makes.
class CalleeCollector {
 public:
  CalleeCollector();
  ~CalleeCollector();
  CalleeCollector(const CalleeCollector&) = delete;
  CalleeCollector& operator=(const CalleeCollector&) = delete;
  Owned take() { return std::move(owned_); }

 private:
  friend class Callee;
  Owned owned_;
  CalleeCollector* before_;
};

/// T with what it owns.
template <typename T>
struct Owning : T {
  Owning(T value, Owned owns) : T(std::move(value)), owned(std::move(owns)) {}
  Owned owned;
};

/// Slots of a type whose C++ class has a member `owned`.
template <typename T>
PyType_Slot* owning_slots() {
  static PyType_Slot slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(+[](PyObject* self, visitproc visit, void* arg) {
         Py_VISIT(Py_TYPE(self));
         return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->owned.traverse(visit, arg) : 0;
       })},
      {Py_tp_clear, reinterpret_cast<void*>(+[](PyObject* self) {
         if (nb::inst_ready(self)) nb::inst_ptr<T>(self)->owned.clear();
         return 0;
       })},
      {0, nullptr}};
  return slots;
}

}  // namespace penstock::python
