// The module behind the package penstock. What users see, and its names, is in penstock/*.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "areas.h"
#include "base/fault.h"
#include "values.h"

namespace nb = nanobind;

NB_MODULE(_native, module) {
  // A function of the user's may close over the dataset it belongs to: such rings are not found.
  nb::set_leak_warnings(false);
  penstock::python::keep_objects();
  module.attr("version") = PENSTOCK_VERSION;
#ifdef PENSTOCK_FAULTS
  module.def("_break_promise", penstock::fault::switch_off);  // for tests
#endif
  penstock::python::bind_interpreter(module);
  penstock::python::bind_stacks(module);
  penstock::python::bind_errors(module);
  penstock::python::bind_dataset(module);
  penstock::python::bind_tables(module);
  penstock::python::bind_record_files(module);
  penstock::python::bind_image(module);
  penstock::python::bind_audio(module);
  penstock::python::bind_functions(module);
  penstock::python::bind_batch(module);
  penstock::python::bind_plan(module);
  penstock::python::bind_report(module);
  penstock::python::bind_doctor(module);
  penstock::python::bind_loader(module);
  penstock::python::bind_loader_options(module);
  penstock::python::bind_worker_serve(module);
  penstock::python::bind_strategy(module);
}
