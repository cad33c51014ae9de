#include "callee.h"

#include "penstock/error.h"

namespace penstock::python {
namespace {

thread_local CalleeCollector* collector = nullptr;

}  // namespace

Callee::Callee(nb::handle object) : shared_(std::make_shared<Shared>()) {
  shared_->object = object.ptr();
  if (collector != nullptr) collector->owned_.add(*this);
}

nb::object Callee::get() const {
  if (shared_->object == nullptr)
    throw CancelledError("the dataset that owns this function no longer exists");
  return nb::borrow(shared_->object);
}

void Owned::add(const Callee& callee) {
  if (callee.shared_->object == nullptr) return;
  all_.push_back(callee);
  Py_INCREF(callee.shared_->object);
  ++callee.shared_->owners;
}

void Owned::add(const Owned& other) {
  for (const Callee& callee : other.all_) add(callee);
}

void Owned::clear() noexcept {
  // Destroying these may run any code, which must not see a half-cleared list.
  const std::vector<Callee> all = std::exchange(all_, {});
  for (const Callee& callee : all) {
    PyObject* const object = callee.shared_->object;
    if (--callee.shared_->owners == 0 && !callee.shared_->pinned) callee.shared_->object = nullptr;
    Py_DECREF(object);
  }
}

void Owned::pin() const {
  for (const Callee& callee : all_)
    if (!callee.shared_->pinned) callee.shared_->pinned = hold(callee.shared_->object);
}

int Owned::traverse(visitproc visit, void* arg) const {
  for (const Callee& callee : all_) Py_VISIT(callee.shared_->object);
  return 0;
}

CalleeCollector::CalleeCollector() : before_(std::exchange(collector, this)) {}

CalleeCollector::~CalleeCollector() {
  collector = before_;
}

}  // namespace penstock::python
