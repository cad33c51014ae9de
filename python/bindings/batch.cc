#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "areas.h"
#include "batches.h"
#include "values.h"

namespace penstock::python {

PyBatch::~PyBatch() {
  // After a fork, a thread that does not exist here may hold the ring's lock.
  if (forked_while_running()) new Batch(std::move(batch_));
}

nb::object make_batch(Batch batch) {
  return make_object<PyBatch>(std::move(batch));
}

namespace {

using Self = nb::handle_t<PyBatch>;

const Batch& batch_of(nb::handle self) {
  return nb::inst_ptr<PyBatch>(self)->batch();
}

/// A field whose rows may differ in size: a list of texts, or a penstock.Ragged of the arrays that
/// `on` creates.
template <typename On>
nb::object ragged_field(nb::handle self, const FieldSpec& field, On on) {
  const Batch& batch = batch_of(self);
  if (is_variable(field.dtype)) {
    nb::list rows;
    for (std::size_t row = 0; row < batch.rows(); ++row)
      rows.append(to_python(batch.row(row)[field.path]));
    return rows;
  }
  const Ragged ragged = batch.ragged(field.path);
  const auto array = [&](Dtype dtype, const Shape& shape, const void* data) {
    return on(dtype, shape, data, self);
  };
  nb::object shapes = nb::none();
  if (!ragged.shapes.empty() || field.shape.size() > 1)
    if (const auto sizes = static_cast<std::int64_t>(field.shape.size());
        ragged.values.shape().size() == 1)
      shapes =
          array(Dtype::i64, {static_cast<std::int64_t>(batch.rows()), sizes}, ragged.shapes.data());
  return nb::module_::import_("penstock.ragged")
      .attr("Ragged")(array(field.dtype, ragged.values.shape(), ragged.values.raw().data()),
                      array(Dtype::i64, {static_cast<std::int64_t>(ragged.offsets.size())},
                            ragged.offsets.data()),
                      shapes);
}

nb::object field_of(nb::handle self, std::size_t index) {
  const Batch& batch = batch_of(self);
  const FieldSpec& field = batch.spec().fields[index];
  if (batch.is_ragged(field.path)) return ragged_field(self, field, array_on);
  const Tensor tensor = batch[field.path];
  try {
    return array_on(tensor.dtype(), tensor.shape(), tensor.raw().data(), self);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("field \"{}\": {}", field.path, error.message()), {},
                      error.remedy());
  }
}

nb::object nested(nb::handle self, const Structure& structure, std::size_t first) {
  auto leaf = [&](std::size_t i) { return field_of(self, i); };
  return nest(structure, first, leaf);
}

std::size_t leaves_in(const Structure& structure) {
  if (structure.kind == Structure::Kind::leaf) return 1;
  std::size_t count = 0;
  for (const auto& [name, child] : structure.children) count += leaves_in(child);
  return count;
}

/// The object at `path`: a field, or a part of the structure.
nb::object at_path(nb::handle self, const std::string& path) {
  const ElementSpec& spec = batch_of(self).spec();
  if (const auto index = spec.find(path)) return field_of(self, *index);
  const Structure* at = &spec.structure;
  std::size_t first = 0;
  std::size_t from = 0;
  while (from <= path.size() && at->kind != Structure::Kind::leaf) {
    const std::size_t to = std::min(path.find('/', from), path.size());
    const std::string name = path.substr(from, to - from);
    const Structure* found = nullptr;
    for (const auto& [child_name, child] : at->children) {
      if (child_name == name) {
        found = &child;
        break;
      }
      first += leaves_in(child);
    }
    if (found == nullptr) break;
    at = found;
    from = to + 1;
    if (from > path.size()) return nested(self, *at, first);
  }
  throw nb::key_error(fmt::format("no field \"{}\" in {}", path, spec.text()).c_str());
}

nb::object item(Self self, nb::handle key) {
  if (nb::isinstance<nb::str>(key)) return at_path(self, utf8_of(key));
  if (!nb::isinstance<nb::int_>(key))
    throw nb::type_error("index a batch by the name of a field, or by its position in a tuple");
  const Structure& structure = batch_of(self).spec().structure;
  if (structure.kind != Structure::Kind::tuple)
    throw nb::type_error(
        fmt::format("this batch is {}: take fields by name; rows are batch.numpy()[i], or "
                    "batch.row(i)",
                    batch_of(self).spec().text())
            .c_str());
  const auto parts = static_cast<Py_ssize_t>(structure.children.size());
  Py_ssize_t place = PyNumber_AsSsize_t(key.ptr(), nullptr);  // clips values that are too large
  if (place < 0) place += parts;
  if (place < 0 || place >= parts) throw nb::index_error("the tuple has fewer parts");
  return at_path(self, fmt::format("{}", place));
}

nb::object iterate(Self self) {
  const Structure& structure = batch_of(self).spec().structure;
  nb::list parts;
  for (const auto& [name, child] : structure.children) {
    if (structure.kind == Structure::Kind::dict) {
      parts.append(nb::str(name.data(), name.size()));
    } else {
      parts.append(at_path(self, name));
    }
  }
  if (structure.kind == Structure::Kind::leaf)
    throw nb::type_error("this batch is one array: take it with batch.numpy()");
  return nb::iter(parts);
}

nb::object numpy(Self self) {
  return nested(self, batch_of(self).spec().structure, 0);
}

nb::object dlpack_of(Self self, const std::string& path) {
  const Tensor tensor = batch_of(self)[path];
  return dlpack_on(tensor.dtype(), tensor.shape(), tensor.raw().data(), self);
}

nb::object dlpack_parts(Self self) {
  const Batch& batch = batch_of(self);
  std::size_t first = 0;
  auto leaf = [&](std::size_t i) -> nb::object {
    const FieldSpec& field = batch.spec().fields[i];
    if (batch.is_ragged(field.path)) return ragged_field(self, field, dlpack_on);
    return dlpack_of(self, field.path);
  };
  return nest(batch.spec().structure, first, leaf);
}

template <typename T>
nb::object row_array(nb::handle self, std::span<const T> values) {
  return array_on(kDtypeOf<T>, {static_cast<std::int64_t>(values.size())}, values.data(), self);
}

nb::object valid(Self self) {
  const auto values = batch_of(self).valid();
  return array_on(Dtype::boolean, {static_cast<std::int64_t>(values.size())}, values.data(), self);
}

std::string text(const PyBatch& self) {
  const Batch& batch = self.batch();
  return fmt::format("Batch(epoch {}, step {}, {} rows of {})", batch.epoch(), batch.step(),
                     batch.rows(), batch.spec().text());
}

nb::list keys(Self self) {
  const Structure& structure = batch_of(self).spec().structure;
  nb::list names;
  if (structure.kind == Structure::Kind::dict)
    for (const auto& [name, child] : structure.children)
      names.append(nb::str(name.data(), name.size()));
  return names;
}

}  // namespace

void bind_batch(nb::module_& module) {
  nb::class_<PyBatch> batch(module, "Batch",
                            "One share of one global step; its views keep its memory alive.");
  batch.def("__getitem__", item, nb::arg("key").none(), "The field at a path, as a NumPy view.");
  batch.def("__iter__", iterate, "The parts of a tuple, or the keys of a dict.");
  batch.def(
      "__contains__",
      [](const PyBatch& self, nb::handle path) {
        return nb::isinstance<nb::str>(path) && self.batch().spec().find(utf8_of(path)).has_value();
      },
      nb::arg("path").none(), nb::sig("def __contains__(self, path: object) -> bool"));
  batch.def("__repr__", text);
  batch.def("__len__", [](const PyBatch& self) { return self.batch().rows(); }, "Rows.");
  batch.def("keys", keys, "The keys of a dict.");
  batch.def("numpy", numpy, "All fields as NumPy views, nested like the elements.");
  batch.def(
      "dlpack",
      [](Self self, nb::handle path) {
        const nb::object text = nb::module_::import_("penstock.arguments").attr("text");
        return dlpack_of(self, utf8_of(text("dlpack", "path", nb::borrow(path))));
      },
      nb::arg("path").none() = "", nb::sig("def dlpack(self, path: str = '') -> typing.Any"),
      "A field as an object with __dlpack__.");
  batch.def("dlpack_parts", dlpack_parts);
  batch.def(
      "torch",
      [](nb::handle self) {
        return nb::module_::import_("penstock.tensors").attr("torch_of")(self);
      },
      nb::sig("def torch(self) -> typing.Any"),
      "All fields as torch tensors that share the memory, nested like the elements.");
  batch.def(
      "lengths",
      [](Self self, nb::handle path) {
        const nb::object text = nb::module_::import_("penstock.arguments").attr("text");
        const auto lengths =
            batch_of(self).lengths(utf8_of(text("lengths", "path", nb::borrow(path))));
        return to_python(Tensor::of(lengths));
      },
      nb::arg("path").none() = "", nb::sig("def lengths(self, path: str = '') -> typing.Any"),
      "The length of each row of a field before padding, as an array.");
  batch.def(
      "row",
      [](Self self, nb::handle index) {
        return to_python(batch_of(self).row(whole_of("row", "index", index)));
      },
      nb::arg("index").none(), nb::sig("def row(self, index: int) -> typing.Any"),
      "A copy of one row, as a sample.");
  batch.def_prop_ro("rows", [](const PyBatch& self) { return self.batch().rows(); });
  batch.def_prop_ro("epoch", [](const PyBatch& self) { return self.batch().epoch(); });
  batch.def_prop_ro("step", [](const PyBatch& self) { return self.batch().step(); });
  batch.def_prop_ro("share", [](const PyBatch& self) { return self.batch().share(); });
  batch.def_prop_ro("weight", [](Self self) { return row_array(self, batch_of(self).weight()); });
  batch.def_prop_ro("valid", valid);
  batch.def_prop_ro("sample_id",
                    [](Self self) { return row_array(self, batch_of(self).sample_id()); });
  batch.def_prop_ro("loss_scale", [](const PyBatch& self) { return self.batch().loss_scale(); });
  batch.def_prop_ro("valid_count", [](const PyBatch& self) { return self.batch().valid_count(); });
  batch.def_prop_ro("global_valid",
                    [](const PyBatch& self) { return self.batch().global_valid(); });
  batch.def_prop_ro("nbytes", [](const PyBatch& self) { return self.batch().bytes(); });
  batch.def_prop_ro("spec", [](const PyBatch& self) { return to_python(self.batch().spec()); });
}

}  // namespace penstock::python
