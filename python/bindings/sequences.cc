#include "sequences.h"

#include <fmt/format.h>

#include "values.h"

namespace penstock::python {

UserSequence::UserSequence(nb::handle object)
    : object_(object),
      size_(nb::len(object)),
      has_begin_(nb::hasattr(object, "on_epoch_begin")),
      has_end_(nb::hasattr(object, "on_epoch_end")) {}

Sample UserSequence::get(std::uint64_t index) {
  return with_interpreter([&] {
    nb::object made = call_user(kept().getitem, nb::make_tuple(object_.get(), index));
    // Keras treats a list of inputs and targets like a tuple.
    if (PyList_Check(made.ptr())) made = nb::tuple(made);
    return sample_made(made);
  });
}

void UserSequence::call_hook(const char* name) const {
  with_interpreter([&] {
    if (!object_.gone()) call_user(object_.get().attr(name), nb::make_tuple());
  });
}

void UserSequence::on_epoch_begin() {
  if (has_begin_) return call_hook("on_epoch_begin");
  Sequence::on_epoch_begin();
}

void UserSequence::on_epoch_end() {
  if (has_end_) return call_hook("on_epoch_end");
  Sequence::on_epoch_end();
}

}  // namespace penstock::python
