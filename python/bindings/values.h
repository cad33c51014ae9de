#pragma once
// NumPy arrays, numbers, dicts and tuples as tensors and samples, and back.

#include <nanobind/nanobind.h>

#include <array>
#include <optional>

#include "interpreter.h"
#include "penstock/spec.h"

namespace penstock::python {

/// Objects of other modules that are needed often; looked up once, when the module is imported,
/// since a lookup may release the GIL.
struct Kept {
  nb::handle ndarray;
  nb::handle asarray;
  nb::handle contiguous;
  nb::handle dtype;
  nb::handle next;
  nb::handle end;  // a unique end marker
  nb::handle getitem;
  std::array<nb::handle, 16> scalars;  // types of NumPy scalars, by dtype
};
void keep_objects();
const Kept& kept();

/// How NumPy gets the bytes of a tensor.
enum class Bytes : std::uint8_t {
  copied,     // the tensor is valid for this call only
  looked_at,  // `owner` keeps them alive
};

/// Arrays are read in place and kept alive; numbers, lists and other objects go through
/// numpy.asarray. Throws ConfigError for what a tensor cannot hold.
Tensor tensor_of(nb::handle value);
/// Copies an array of exactly this dtype and shape; does nothing and returns false for anything
/// else.
bool copy_if_plain(nb::handle value, Dtype dtype, std::span<const std::int64_t> shape,
                   std::size_t bytes_max, std::byte* to);
/// Throws ConfigError for a part nested too deeply in dicts and tuples: recursion must end before
/// the stack does.
void check_depth(int depth);
/// Dicts and tuples become structures; a list is an array. Throws ConfigError if they are nested
/// too deeply.
Sample sample_of(nb::handle value);
/// The same for the new result of a function, with one reference, the caller's: arrays that
/// something else can still write to, such as a reused buffer, are copied.
Sample sample_made(const nb::object& value);

/// A NumPy array or, for a scalar, a NumPy scalar; bytes and str for values of varying length.
nb::object to_python(const Tensor& tensor, Bytes bytes = Bytes::copied, nb::handle owner = {});
nb::object to_python(const Sample& sample);
/// A NumPy array, also for a scalar, that is a view of memory that `owner` keeps alive.
nb::object array_on(Dtype dtype, const Shape& shape, const void* data, nb::handle owner);
/// An object with __dlpack__ that does the same; for all dtypes.
nb::object dlpack_on(Dtype dtype, const Shape& shape, const void* data, nb::handle owner);

/// "int64" for i64.
const char* numpy_name(Dtype dtype);
Dtype dtype_of(nb::handle name);
/// A structure with fields (anything with dtype and shape) as leaves.
ElementSpec spec_of(nb::handle value);
std::optional<ElementSpec> optional_spec(nb::handle value);
/// A structure of penstock.Field; None if not known before running.
nb::object to_python(const ElementSpec& spec);

/// Calls `leaf(i)` for each leaf of a structure, in order, and returns the nested results.
template <typename Leaf>
nb::object nest(const Structure& structure, std::size_t& next, Leaf& leaf) {
  if (structure.kind == Structure::Kind::leaf) return leaf(next++);
  if (structure.kind == Structure::Kind::dict) {
    nb::dict dict;
    for (const auto& [name, child] : structure.children)
      dict[nb::str(name.data(), name.size())] = nest(child, next, leaf);
    return dict;
  }
  const nb::object tuple =
      nb::steal(PyTuple_New(static_cast<Py_ssize_t>(structure.children.size())));
  Py_ssize_t i = 0;
  for (const auto& [name, child] : structure.children)
    PyTuple_SET_ITEM(tuple.ptr(), i++, nest(child, next, leaf).release().ptr());
  return tuple;
}

}  // namespace penstock::python
