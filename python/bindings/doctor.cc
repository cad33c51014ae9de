#include "penstock/doctor.h"

#include <string>

#include "areas.h"
#include "interpreter.h"

namespace penstock::python {

void bind_doctor(nb::module_& module) {
  module.def("examine_machine", [](const nb::bytes& data) {
    const ExamineOptions options{.data = {data.c_str(), data.size()}};
    MachineExamination found;
    {
      const Unlocked unlocked;
      found = examine_machine(options);
    }
    return str_of(found.json());
  });
}

}  // namespace penstock::python
