#include "values.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace penstock::python {
namespace {

struct Known {
  Dtype dtype;
  const char* name;        // NumPy's
  const char* characters;  // in buffers
  nb::dlpack::dtype_code code;
};
constexpr std::array<Known, 13> kKnown{{
    {Dtype::boolean, "bool", "?", nb::dlpack::dtype_code::Bool},
    {Dtype::u8, "uint8", "B", nb::dlpack::dtype_code::UInt},
    {Dtype::u16, "uint16", "H", nb::dlpack::dtype_code::UInt},
    {Dtype::u32, "uint32", "I", nb::dlpack::dtype_code::UInt},
    {Dtype::u64, "uint64", "LQ", nb::dlpack::dtype_code::UInt},
    {Dtype::i8, "int8", "b", nb::dlpack::dtype_code::Int},
    {Dtype::i16, "int16", "h", nb::dlpack::dtype_code::Int},
    {Dtype::i32, "int32", "i", nb::dlpack::dtype_code::Int},
    {Dtype::i64, "int64", "lq", nb::dlpack::dtype_code::Int},
    {Dtype::f16, "float16", "e", nb::dlpack::dtype_code::Float},
    {Dtype::bf16, "bfloat16", "", nb::dlpack::dtype_code::Bfloat},
    {Dtype::f32, "float32", "f", nb::dlpack::dtype_code::Float},
    {Dtype::f64, "float64", "d", nb::dlpack::dtype_code::Float},
}};

const Known& known(Dtype dtype) {
  return kKnown[static_cast<std::size_t>(dtype)];
}

nb::dlpack::dtype dlpack_dtype(Dtype dtype) {
  return {static_cast<std::uint8_t>(known(dtype).code),
          static_cast<std::uint8_t>(dtype_size(dtype) * 8), 1};
}

nb::object attribute(const char* module, const char* name) {
  return nb::module_::import_(module).attr(name);
}

Kept* kept_objects = nullptr;

[[noreturn]] void refuse(nb::handle array, const std::string& why, const std::string& remedy) {
  throw ConfigError(fmt::format("an array of dtype {} {}", text_of(array.attr("dtype")), why), {},
                    remedy);
}

/// The dtype of a buffer's format, or nullopt.
std::optional<Dtype> dtype_of_format(const char* format) {
  if (*format == '<' || *format == '=' || *format == '@') ++format;
  if (std::strlen(format) != 1) return std::nullopt;
  for (const Known& each : kKnown)
    if (std::strchr(each.characters, *format) != nullptr && each.characters[0] != '\0')
      return each.dtype;
  return std::nullopt;
}

class Buffer {
 public:
  Buffer(nb::handle object, int flags) : ok_(PyObject_GetBuffer(object.ptr(), &view_, flags) == 0) {
    if (!ok_) PyErr_Clear();
  }
  ~Buffer() {
    if (ok_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  explicit operator bool() const { return ok_; }
  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_{};
  bool ok_;
};

Tensor text_tensor(nb::handle value, Dtype dtype) {
  if (dtype == Dtype::bytes) {
    const auto bytes = nb::borrow<nb::bytes>(value);
    return Tensor::bytes({bytes.c_str(), bytes.size()}, dtype);
  }
  return Tensor::bytes(utf8_of(value), dtype);
}

/// How the bytes of arrays become those of tensors.
enum class Arrays : std::uint8_t {
  viewed,   // in place: they do not change as long as the tensor lives
  made,     // in place, unless something else can still write to them
  changing  // copied
};

/// False if something else can write to the array: its creator still references it, or it is a view
/// of another object's memory. The caller has one reference.
bool only_ours(nb::handle array) {
  if (Py_REFCNT(array.ptr()) != 1) return false;
  nb::object base = array.attr("base");
  while (!base.is_none()) {
    constexpr Py_ssize_t kViewAndHere = 2;
    if (Py_REFCNT(base.ptr()) != kViewAndHere ||
        Py_TYPE(base.ptr()) != reinterpret_cast<PyTypeObject*>(kept().ndarray.ptr()))
      return false;
    base = base.attr("base");
  }
  return true;
}

bool needs_copy(nb::handle array, Arrays arrays) {
  if (arrays == Arrays::made) return !only_ours(array);
  return arrays == Arrays::changing;
}

Tensor tensor_of_array(nb::handle array, bool copies) {
  const Buffer buffer(array, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
  if (!buffer) {
    const auto name = text_of(array.attr("dtype").attr("name"));
    if (name == "bfloat16") {
      const Tensor bits = tensor_of_array(array.attr("view")("uint16"), copies);
      return Tensor::view(Dtype::bf16, bits.shape(), bits.raw(), std::make_shared<Tensor>(bits));
    }
    const bool contiguous = nb::cast<bool>(array.attr("flags").attr("c_contiguous"));
    if (contiguous) refuse(array, "cannot be read", "convert it to numbers");
    return tensor_of_array(kept().contiguous(nb::borrow(array)), false);
  }
  const std::string format = buffer->format == nullptr ? "B" : buffer->format;
  const auto dtype = dtype_of_format(format.c_str());
  if (!dtype) {
    if (format.ends_with('w') && buffer->ndim == 0)
      return text_tensor(array.attr("item")(), Dtype::string);
    if (format.ends_with('s') && buffer->ndim == 0)
      return text_tensor(array.attr("item")(), Dtype::bytes);
    if (format == "O")
      refuse(array, "holds Python objects, which a tensor cannot",
             "give it one dtype, as in array.astype(\"float32\"); rows of different lengths are "
             "padded first, or come from a generator");
    if (format.starts_with('>') || format.starts_with('!'))
      refuse(array, "is big-endian",
             "array.astype(array.dtype.newbyteorder(\"=\")) turns it round");
    refuse(array, "is not supported",
           "use bool, integers, float16, float32, float64, or one str or bytes per sample");
  }
  Shape shape;
  for (int i = 0; i < buffer->ndim; ++i) shape.push_back(buffer->shape[i]);
  const auto* const data = static_cast<const std::byte*>(buffer->buf);
  const std::span<const std::byte> bytes(data, static_cast<std::size_t>(buffer->len));
  // Small arrays are copied: that costs less than releasing a reference from another thread.
  constexpr std::size_t kSmall = 512;
  if (copies || bytes.size() <= kSmall) return Tensor::copy(*dtype, std::move(shape), bytes);
  return Tensor::view(*dtype, std::move(shape), bytes, hold(array));
}

}  // namespace

bool copy_if_plain(nb::handle value, Dtype dtype, std::span<const std::int64_t> shape,
                   std::size_t bytes_max, std::byte* to) {
  if (Py_TYPE(value.ptr()) != reinterpret_cast<PyTypeObject*>(kept().ndarray.ptr())) return false;
  const Buffer buffer(value, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
  if (!buffer || static_cast<std::size_t>(buffer->len) > bytes_max || buffer->format == nullptr ||
      dtype_of_format(buffer->format) != dtype ||
      !std::equal(shape.begin(), shape.end(), buffer->shape, buffer->shape + buffer->ndim))
    return false;
  if (buffer->len > 0) std::memcpy(to, buffer->buf, static_cast<std::size_t>(buffer->len));
  return true;
}

void check_depth(int depth) {
  constexpr int kDepthMax = 64;  // as in a worker's results
  if (depth > kDepthMax)
    throw ConfigError(fmt::format("dicts and tuples are nested deeper than {} levels", kDepthMax),
                      {}, "return flatter samples; does a tuple contain itself?");
}

void keep_objects() {
  kept_objects = new Kept;
  kept_objects->ndarray = attribute("numpy", "ndarray").release();
  kept_objects->asarray = attribute("numpy", "asarray").release();
  kept_objects->contiguous = attribute("numpy", "ascontiguousarray").release();
  kept_objects->dtype = attribute("numpy", "dtype").release();
  kept_objects->next = attribute("builtins", "next").release();
  kept_objects->end = attribute("builtins", "object")().release();
  kept_objects->getitem = attribute("operator", "getitem").release();
  for (const Known& each : kKnown)
    if (each.dtype != Dtype::bf16)
      kept_objects->scalars[static_cast<std::size_t>(each.dtype)] =
          attribute("numpy", each.dtype == Dtype::boolean ? "bool_" : each.name).release();
}

const Kept& kept() {
  return *kept_objects;
}

namespace {

Tensor tensor_from(nb::handle value, Arrays arrays) {
  if (PyFloat_CheckExact(value.ptr())) return Tensor::scalar(PyFloat_AS_DOUBLE(value.ptr()));
  if (PyBool_Check(value.ptr())) return Tensor::scalar(value.ptr() == Py_True);
  if (PyLong_CheckExact(value.ptr())) {
    const long long number = PyLong_AsLongLong(value.ptr());
    if (number != -1 || PyErr_Occurred() == nullptr)
      return Tensor::scalar(static_cast<std::int64_t>(number));
    PyErr_Clear();
  }
  if (PyBytes_Check(value.ptr())) return text_tensor(value, Dtype::bytes);
  if (PyUnicode_Check(value.ptr())) return text_tensor(value, Dtype::string);
  if (value.is_none())
    throw ConfigError("None is not a valid value in a sample", {},
                      "a function must return its result (is a return missing?)");
  if (PyObject_IsInstance(value.ptr(), kept().ndarray.ptr()) == 1)
    return tensor_of_array(value, needs_copy(value, arrays));
  if (PyGen_Check(value.ptr()))
    throw ConfigError("a generator is not a valid value in a sample", {},
                      "a map function returns one sample; for several use flat_map, or pass the "
                      "generator function to from_generator");
  nb::object array;
  try {
    array = kept().asarray(nb::borrow(value));
  } catch (nb::python_error& error) {
    throw ConfigError(fmt::format("a {} is not an array: {}",
                                  text_of(value.type().attr("__name__")), text_of(error.value())));
  }
  const auto kind = text_of(array.attr("dtype").attr("kind"));
  if (kind == "O")
    throw ConfigError(
        fmt::format("a {} is not an array of numbers", text_of(value.type().attr("__name__"))), {},
        "return arrays, numbers, str or bytes, in dicts and tuples");
  // A list becomes a new array; an object that converts itself may expose its own memory.
  return tensor_of_array(array, needs_copy(array, arrays));
}

Sample sample_from(nb::handle value, Arrays arrays, int depth = 0) {
  check_depth(depth);
  if (!PyDict_Check(value.ptr()) && !PyTuple_Check(value.ptr())) return tensor_from(value, arrays);
  // Arrays in a dict or tuple that something else references may be written to as well.
  if (arrays == Arrays::made && Py_REFCNT(value.ptr()) != 1) arrays = Arrays::changing;
  if (PyTuple_Check(value.ptr())) {
    std::vector<Sample> parts;
    for (const nb::handle item : nb::borrow<nb::tuple>(value))
      parts.push_back(sample_from(item, arrays, depth + 1));
    return Sample::tuple(std::move(parts));
  }
  std::vector<std::pair<std::string, Sample>> items;
  for (const auto& [key, item] : nb::borrow<nb::dict>(value)) {
    if (!nb::isinstance<nb::str>(key))
      throw ConfigError(
          fmt::format("the keys of a dict of fields are str, not {}", text_of(nb::repr(key))));
    items.emplace_back(nb::cast<std::string>(key), sample_from(item, arrays, depth + 1));
  }
  return Sample::dict(std::move(items));
}

}  // namespace

Tensor tensor_of(nb::handle value) {
  return tensor_from(value, Arrays::viewed);
}

Sample sample_of(nb::handle value) {
  return sample_from(value, Arrays::viewed);
}

Sample sample_made(const nb::object& value) {
  return sample_from(value, Arrays::made);
}

nb::object dlpack_on(Dtype dtype, const Shape& shape, const void* data, nb::handle owner) {
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  const nb::ndarray<nb::array_api> array(const_cast<void*>(data), sizes.size(), sizes.data(), owner,
                                         nullptr, dlpack_dtype(dtype));
  return nb::cast(array, nb::rv_policy::reference);
}

nb::object array_on(Dtype dtype, const Shape& shape, const void* data, nb::handle owner) {
  if (dtype == Dtype::bf16)
    throw ConfigError("NumPy has no bfloat16", {},
                      "use .torch() for this field, or .dlpack(path) for other libraries");
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  const nb::ndarray<nb::numpy> array(const_cast<void*>(data), sizes.size(), sizes.data(), owner,
                                     nullptr, dlpack_dtype(dtype));
  return nb::cast(array, nb::rv_policy::reference);
}

namespace {

template <typename T>
T read(const Tensor& tensor) {
  T value;
  std::memcpy(&value, tensor.raw().data(), sizeof value);
  return value;
}

/// A Python number with the value of a scalar.
nb::object number_of(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case Dtype::boolean:
      return nb::bool_(read<bool>(tensor));
    case Dtype::u8:
      return nb::int_(read<std::uint8_t>(tensor));
    case Dtype::u16:
      return nb::int_(read<std::uint16_t>(tensor));
    case Dtype::u32:
      return nb::int_(read<std::uint32_t>(tensor));
    case Dtype::u64:
      return nb::int_(read<std::uint64_t>(tensor));
    case Dtype::i8:
      return nb::int_(read<std::int8_t>(tensor));
    case Dtype::i16:
      return nb::int_(read<std::int16_t>(tensor));
    case Dtype::i32:
      return nb::int_(read<std::int32_t>(tensor));
    case Dtype::i64:
      return nb::int_(read<std::int64_t>(tensor));
    case Dtype::f16:
      return nb::float_(static_cast<double>(static_cast<float>(read<Half>(tensor))));
    case Dtype::f32:
      return nb::float_(static_cast<double>(read<float>(tensor)));
    default:
      return nb::float_(read<double>(tensor));
  }
}

}  // namespace

nb::object to_python(const Tensor& tensor, Bytes bytes, nb::handle owner) {
  if (tensor.dtype() == Dtype::bytes) return nb::bytes(tensor.text().data(), tensor.text().size());
  if (tensor.dtype() == Dtype::string) return str_of(tensor.text());
  if (tensor.shape().empty() && tensor.dtype() != Dtype::bf16)
    return kept().scalars[static_cast<std::size_t>(tensor.dtype())](number_of(tensor));
  if (bytes == Bytes::looked_at)
    return array_on(tensor.dtype(), tensor.shape(), tensor.raw().data(), owner);
  const std::span<const std::byte> raw = tensor.raw();
  auto* const copy = new std::byte[std::max<std::size_t>(1, raw.size())];
  if (!raw.empty()) std::memcpy(copy, raw.data(), raw.size());
  const nb::capsule mine(copy, [](void* data) noexcept { delete[] static_cast<std::byte*>(data); });
  return array_on(tensor.dtype(), tensor.shape(), copy, mine);
}

nb::object to_python(const Sample& sample) {
  std::size_t next = 0;
  auto leaf = [&](std::size_t i) { return to_python(sample.leaves()[i]); };
  return nest(sample.structure(), next, leaf);
}

const char* numpy_name(Dtype dtype) {
  if (dtype == Dtype::bytes) return "bytes";
  return dtype == Dtype::string ? "str" : known(dtype).name;
}

Dtype dtype_of(nb::handle wanted) {
  std::string name;
  if (nb::isinstance<nb::str>(wanted)) {
    name = nb::cast<std::string>(wanted);
  } else if (wanted.is(nb::handle(reinterpret_cast<PyObject*>(&PyUnicode_Type)))) {
    name = "str";
  } else if (wanted.is(nb::handle(reinterpret_cast<PyObject*>(&PyBytes_Type)))) {
    name = "bytes";
  } else {
    name = text_of(kept().dtype(nb::borrow(wanted)).attr("name"));
  }
  for (const Known& each : kKnown)
    if (name == each.name || name == dtype_name(each.dtype)) return each.dtype;
  if (name == "bytes") return Dtype::bytes;
  if (name == "str" || name == "string") return Dtype::string;
  throw ConfigError(fmt::format("\"{}\" is not a dtype of penstock", name), {},
                    "use bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, "
                    "float64, str or bytes");
}

namespace {

Shape shape_of(nb::handle value) {
  Shape shape;
  for (const nb::handle size : nb::borrow<nb::iterable>(value))
    shape.push_back(size.is_none() ? kUnknown : nb::cast<std::int64_t>(size));
  return shape;
}

Structure structure_of(nb::handle value, const std::string& path, std::vector<FieldSpec>& fields,
                       int depth = 0) {
  check_depth(depth);
  Structure structure;
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : fmt::format("{}/{}", path, name);
  };
  if (PyDict_Check(value.ptr())) {
    structure.kind = Structure::Kind::dict;
    const nb::object sorted = nb::steal(PyDict_Keys(value.ptr()));
    sorted.attr("sort")();
    for (const nb::handle key : nb::borrow<nb::list>(sorted)) {
      const auto name = nb::cast<std::string>(key);
      structure.children.emplace_back(
          name, structure_of(nb::borrow<nb::dict>(value)[key], below(name), fields, depth + 1));
    }
  } else if (PyTuple_Check(value.ptr())) {
    structure.kind = Structure::Kind::tuple;
    for (const nb::handle item : nb::borrow<nb::tuple>(value)) {
      const std::string name = fmt::format("{}", structure.children.size());
      structure.children.emplace_back(name, structure_of(item, below(name), fields, depth + 1));
    }
  } else if (nb::hasattr(value, "dtype") && nb::hasattr(value, "shape")) {
    fields.push_back({path, dtype_of(value.attr("dtype")), shape_of(value.attr("shape"))});
  } else {
    throw ConfigError(fmt::format("{} is not the spec of a field", text_of(nb::repr(value))), {},
                      "use penstock.Field(dtype, shape) for each field, in dicts and tuples");
  }
  return structure;
}

}  // namespace

ElementSpec spec_of(nb::handle value) {
  ElementSpec spec;
  spec.structure = structure_of(value, "", spec.fields);
  return spec;
}

std::optional<ElementSpec> optional_spec(nb::handle value) {
  if (value.is_none()) return std::nullopt;
  return spec_of(value);
}

nb::object to_python(const ElementSpec& spec) {
  if (!spec.known) return nb::none();
  const nb::object field = nb::module_::import_("penstock.spec").attr("Field");
  std::size_t next = 0;
  auto leaf = [&](std::size_t i) {
    nb::list shape;
    for (const std::int64_t size : spec.fields[i].shape) {
      if (size == kUnknown) {
        shape.append(nb::none());
      } else {
        shape.append(size);
      }
    }
    return field(numpy_name(spec.fields[i].dtype), nb::tuple(shape));
  };
  return nest(spec.structure, next, leaf);
}

}  // namespace penstock::python
