#pragma once
// Users' functions as datasets hold them: owned only by Python objects, so that Python's garbage
// collector sees every reference. An object that holds a loader of its own method is a cycle; a
// reference inside the engine would keep it alive forever.

#include <memory>
#include <utility>
#include <vector>

#include "interpreter.h"

namespace penstock::python {

/// A function, or another object, that the engine calls. Copies refer to the same one. It is
/// destroyed with the last Python object that owns it: nothing can then request its results.
class Callee {
 public:
  /// Call it with the GIL held and a reference to the function. The collecting objects own it from
  /// now on.
  explicit Callee(nb::handle object);
  /// Call it with the GIL held. Throws CancelledError if the function is gone.
  [[nodiscard]] nb::object get() const;
  [[nodiscard]] bool gone() const { return shared_->object == nullptr; }

 private:
  friend class Owned;
  struct Shared {
    PyObject* object = nullptr;
    std::size_t owners = 0;
    Held pinned;  // the engine's own reference, if it has one
  };
  std::shared_ptr<Shared> shared_;
};

/// What a Python object owns. Each copy has its own references. Use it with the GIL held.
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
  /// From now on the engine holds references too: for datasets that only the engine has.
  void pin() const;
  /// For tp_traverse.
  int traverse(visitproc visit, void* arg) const;

 private:
  std::vector<Callee> all_;
};

/// While it exists, it collects the Callees that this thread creates.
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

/// A T and what it owns.
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
