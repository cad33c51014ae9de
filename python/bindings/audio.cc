// Audio: the op that decodes recordings, by its arguments. Folders and files are in image.cc.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "areas.h"
#include "base/json.h"
#include "op/op.h"

namespace nb = nanobind;

namespace penstock::python {

void bind_audio(nb::module_& module) {
  module.def("audio_decode", [](const std::string& arguments) {
    return OpCall(make_catalogued_op("audio_decode", Json::parse(arguments)));
  });
}

}  // namespace penstock::python
