// Sources of rows of different lengths, tables and text in the native module.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "areas.h"
#include "owning.h"
#include "penstock/arrow.h"
#include "penstock/text_files.h"
#include "values.h"

namespace penstock::python {
namespace {

/// What a capsule of Arrow's interface holds; the capsule is then empty.
template <typename T>
T taken_from(nb::handle capsule, const char* kind) {
  auto* const held = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), kind));
  if (held == nullptr) throw nb::python_error();
  if (held->release == nullptr) throw ConfigError("from_arrow: the table was read before");
  return std::exchange(*held, {});
}

void bind_arrays(nb::module_& module) {
  module.def(
      "from_ragged",
      [](nb::handle values, nb::handle offsets, const std::string& name) {
        return owning([&] {
          return Dataset::from_ragged(tensor_of(values), tensor_of(offsets), {name, {}});
        });
      },
      nb::arg("values"), nb::arg("offsets"), nb::arg("name"));
  module.def(
      "from_windows",
      [](nb::handle values, std::int64_t length, std::int64_t stride, const std::string& name) {
        return owning(
            [&] { return Dataset::from_windows(tensor_of(values), length, stride, {name, {}}); });
      },
      nb::arg("values"), nb::arg("length"), nb::arg("stride"), nb::arg("name"));
  module.def(
      "tokens",
      [](const nb::bytes& pattern, nb::handle dtype, std::int64_t length, std::int64_t stride) {
        return owning([&] {
          return Dataset::tokens({pattern.c_str(), pattern.size()}, dtype_of(dtype), length,
                                 stride);
        });
      },
      nb::arg("pattern"), nb::arg("dtype"), nb::arg("length"), nb::arg("stride"));
  module.def(
      "from_megatron",
      [](const nb::bytes& prefix) {
        return owning([&] { return Dataset::from_megatron({prefix.c_str(), prefix.size()}); });
      },
      nb::arg("prefix"));
}

/// None becomes the empty list.
NullValue null_value(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::bytes>(value)) {
    const auto text = nb::cast<nb::bytes>(value);
    return std::string(text.c_str(), text.size());
  }
  return nb::cast<double>(value);
}

ArrowOptions arrow_options(const nb::dict& nulls, const std::string& name) {
  ArrowOptions options{name, {}};
  for (const auto& [path, value] : nulls)
    options.nulls[nb::cast<std::string>(path)] = null_value(value);
  return options;
}

}  // namespace

void bind_tables(nb::module_& module) {
  bind_arrays(module);
  module.def(
      "from_arrow",
      [](nb::handle capsule, const nb::dict& nulls, const std::string& name) {
        const ArrowOptions options = arrow_options(nulls, name);
        auto stream = taken_from<ArrowArrayStream>(capsule, "arrow_array_stream");
        return owning([&] {
          const Unlocked unlocked;  // a lazy query may run here
          return from_arrow(stream, options);
        });
      },
      nb::arg("capsule"), nb::arg("nulls"), nb::arg("name"));
  module.def(
      "from_arrow_array",
      [](nb::handle schema, nb::handle array, const nb::dict& nulls, const std::string& name) {
        const ArrowOptions options = arrow_options(nulls, name);
        auto own_array = taken_from<ArrowArray>(array, "arrow_array");
        ArrowSchema own_schema{};
        try {
          own_schema = taken_from<ArrowSchema>(schema, "arrow_schema");
        } catch (...) {
          own_array.release(&own_array);
          throw;
        }
        return owning([&] {
          const Unlocked unlocked;
          return from_arrow(own_schema, own_array, options);
        });
      },
      nb::arg("schema"), nb::arg("array"), nb::arg("nulls"), nb::arg("name"));
  module.def(
      "from_text",
      [](const std::vector<nb::bytes>& paths) {
        std::vector<std::string> all;
        for (const nb::bytes& path : paths) all.emplace_back(path.c_str(), path.size());
        return owning([&] { return from_text(all); });
      },
      nb::arg("paths"));
}

}  // namespace penstock::python
