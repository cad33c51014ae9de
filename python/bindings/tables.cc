// Sources of rows of different lengths, tables and text in the native module.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "areas.h"
#include "base/guarded.h"
#include "nulls.h"
#include "owning.h"
#include "penstock/arrow.h"
#include "penstock/table_chunks.h"
#include "values.h"
#include "verb/mapped_bytes.h"

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
      "load",
      [](const nb::bytes& folder) {
        const std::string path(folder.c_str(), folder.size());
        return owning([&] {
          const Unlocked unlocked;
          return Dataset::load(path);
        });
      },
      nb::arg("folder"));
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
  ArrowOptions options{.name = name};
  options.nulls = nulls_of(nulls);
  return options;
}

std::string string_of(const nb::bytes& bytes) {
  return {bytes.c_str(), bytes.size()};
}

/// A chunk's (rows, number of its file, number in it, bytes).
TableChunk chunk_of(nb::handle chunk) {
  const auto [rows, file, number, bytes] =
      nb::cast<std::tuple<std::uint64_t, std::size_t, std::uint64_t, std::uint64_t>>(chunk);
  return {rows, file, number, bytes};
}

/// Calls `load(chunk)`, which returns a table. Called from engine threads.
void load_chunk(const Callee& load, std::uint64_t chunk, ArrowArrayStream& stream) {
  try {
    with_interpreter([&] {
      const nb::object table = call_user(load.get(), nb::make_tuple(chunk));
      stream =
          taken_from<ArrowArrayStream>(table.attr("__arrow_c_stream__")(), "arrow_array_stream");
    });
  } catch (const UserOsError& error) {
    if (may_pass(error.code())) throw;
    throw std::runtime_error(error.what());
  } catch (const UserError& error) {
    throw std::runtime_error(error.what());  // a bad sample, as from any other reader
  }
}

void bind_files(nb::module_& module) {
  module.def(
      "from_arrow_chunks",
      [](nb::handle schema, const std::vector<nb::bytes>& files, const nb::list& chunks,
         nb::handle load, const nb::dict& nulls, const nb::dict& options) {
        ChunkedTable table;
        for (const nb::bytes& file : files) table.files.push_back(string_of(file));
        for (const nb::handle chunk : chunks) table.chunks.push_back(chunk_of(chunk));
        TableChunkOptions chosen;
        chosen.table = arrow_options(nulls, nb::cast<std::string>(options["name"]));
        chosen.table.word = nb::cast<std::string>(options["word"]);
        chosen.chunk_word = nb::cast<std::string>(options["chunk_word"]);
        chosen.identity = nb::cast<std::string>(options["identity"]);
        chosen.chunk_bytes_max = nb::cast<std::uint64_t>(options["chunk_bytes_max"]);
        auto own_schema = taken_from<ArrowSchema>(schema, "arrow_schema");
        return owning([&] {
          table.load = [load = Callee(load)](std::uint64_t chunk, ArrowArrayStream& stream) {
            load_chunk(load, chunk, stream);
          };
          return from_arrow_chunks(own_schema, std::move(table), chosen);
        });
      },
      nb::arg("schema"), nb::arg("files"), nb::arg("chunks"), nb::arg("load"), nb::arg("nulls"),
      nb::arg("options"));
  module.def(
      "from_arrow_files",
      [](nb::handle capsule, const std::vector<std::pair<nb::bytes, std::uint64_t>>& files,
         const nb::dict& nulls, const std::string& name) {
        ArrowOptions options = arrow_options(nulls, name);
        options.word = "from_arrow_files";
        for (const auto& [file, rows] : files) options.files.push_back({string_of(file), rows});
        auto stream = taken_from<ArrowArrayStream>(capsule, "arrow_array_stream");
        return owning([&] {
          const Unlocked unlocked;
          return from_arrow(stream, options);
        });
      },
      nb::arg("capsule"), nb::arg("files"), nb::arg("nulls"), nb::arg("name"));
  module.def(
      "mapped_bytes",
      [](const nb::bytes& path) {
        auto* const mapped = new Tensor(mapped_bytes(string_of(path)));
        const nb::capsule owner(mapped,
                                [](void* gone) noexcept { delete static_cast<Tensor*>(gone); });
        return array_on(Dtype::u8, mapped->shape(), mapped->raw().data(), owner);
      },
      nb::arg("path"));
}

}  // namespace

std::map<std::string, NullValue> nulls_of(const nb::dict& nulls) {
  std::map<std::string, NullValue> values;
  for (const auto& [column, value] : nulls)
    values[nb::cast<std::string>(column)] = null_value(value);
  return values;
}

void bind_tables(nb::module_& module) {
  bind_arrays(module);
  bind_files(module);
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
}

}  // namespace penstock::python
