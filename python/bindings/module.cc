// The module behind the package penstock. What users see, and its names, is in penstock/*.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "areas.h"
#include "base/fault.h"
#include "base/world.h"
#include "values.h"

namespace nb = nanobind;

namespace {

/// Number of processes, and which one this is, as the environment says.
nb::tuple find_world() {
  const penstock::World world = penstock::find_world();
  return nb::make_tuple(world.data_size, world.data_rank, world.source);
}

}  // namespace

NB_MODULE(_native, module) {
  // A function of the user's may close over the dataset it belongs to: such rings are not found.
  nb::set_leak_warnings(false);
  penstock::python::keep_objects();
  module.attr("version") = PENSTOCK_VERSION;
  module.def("find_world", find_world);
#ifdef PENSTOCK_FAULTS
  module.def("_break_promise", penstock::fault::switch_off);  // for tests
#endif
  penstock::python::bind_interpreter(module);
  penstock::python::bind_errors(module);
  penstock::python::bind_dataset(module);
  penstock::python::bind_image(module);
  penstock::python::bind_functions(module);
  penstock::python::bind_batch(module);
  penstock::python::bind_plan(module);
  penstock::python::bind_loader(module);
  penstock::python::bind_strategy(module);
}
