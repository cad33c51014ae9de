#include "generators.h"

#include <nanobind/stl/string.h>

#include "values.h"

namespace penstock::python {

PulledIterator::PulledIterator(const Factory& factory, GeneratorStart start) {
  with_interpreter([&] {
    const nb::tuple arguments =
        factory.takes_epoch ? nb::make_tuple(start.epoch) : nb::make_tuple();
    made_ = hold(call_user(factory.call.get(), arguments));
    iterate_again();
  });
}

void PulledIterator::iterate_again() {
  const nb::object iterator = nb::steal(PyObject_GetIter(made_.get()));
  if (!iterator.is_valid()) throw nb::python_error();
  iterator_ = hold(iterator);
}

std::optional<Sample> PulledIterator::operator()() {
  return with_interpreter([&]() -> std::optional<Sample> {
    const nb::object iterator = nb::borrow(iterator_.get());
    const nb::object end = nb::borrow(kept().end);
    const nb::object item = call_user(kept().next, nb::make_tuple(iterator, end));
    if (item.is(end)) return std::nullopt;
    return sample_made(item);
  });
}

std::string SavedIterator::save() {
  return with_interpreter([&] {
    return nb::cast<std::string>(call_user(nb::handle(made_.get()).attr("save"), nb::make_tuple()));
  });
}

void SavedIterator::restore(const std::string& cursor) {
  with_interpreter([&] {
    call_user(nb::handle(made_.get()).attr("restore"), nb::make_tuple(cursor));
    iterate_again();
  });
}

}  // namespace penstock::python
