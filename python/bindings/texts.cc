#include "texts.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "values.h"

namespace penstock::python {
namespace {

/// The values of one leaf; none where it is an array of numbers.
struct Texts {
  std::vector<std::string> values;
  Dtype dtype = Dtype::string;
};
using TextsPtr = std::shared_ptr<const Texts>;

bool is_text(nb::handle value) {
  return PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
}

bool is_texts(nb::handle value) {
  if (PyList_Check(value.ptr())) {
    const auto list = nb::borrow<nb::list>(value);
    return nb::len(list) > 0 && is_text(list[0]);
  }
  if (PyObject_IsInstance(value.ptr(), kept().ndarray.ptr()) != 1) return false;
  const std::string kind = text_of(value.attr("dtype").attr("kind"));
  return (kind == "U" || kind == "S") && nb::cast<int>(value.attr("ndim")) == 1;
}

TextsPtr texts_of(nb::handle value) {
  Texts texts;
  const nb::object list = PyList_Check(value.ptr()) ? nb::borrow(value) : value.attr("tolist")();
  for (const nb::handle item : nb::borrow<nb::list>(list)) {
    const Dtype dtype = PyBytes_Check(item.ptr()) ? Dtype::bytes : Dtype::string;
    if (!is_text(item) || (!texts.values.empty() && dtype != texts.dtype))
      throw ConfigError("from_tensor_slices: a list of text must contain only str, or only bytes");
    texts.dtype = dtype;
    texts.values.emplace_back(tensor_of(item).text());
  }
  return std::make_shared<const Texts>(std::move(texts));
}

/// Replaces text: the number of the row, and a digest so that other text is other data.
Tensor stand_in(const Texts& texts) {
  std::vector<std::uint64_t> rows;
  for (std::size_t i = 0; i < texts.values.size(); ++i) {
    rows.push_back(i);
    rows.push_back(std::hash<std::string>{}(texts.values[i]));
  }
  return Tensor::of<std::uint64_t>(rows, {static_cast<std::int64_t>(texts.values.size()), 2});
}

/// The arrays with placeholders for text; `leaves` in the order of the sample's.
Sample arrays_of(nb::handle value, std::vector<TextsPtr>& leaves) {
  if (PyDict_Check(value.ptr())) {
    const nb::object keys = nb::steal(PyDict_Keys(value.ptr()));
    keys.attr("sort")();
    std::vector<std::pair<std::string, Sample>> items;
    for (const nb::handle key : nb::borrow<nb::list>(keys))
      items.emplace_back(text_of(key), arrays_of(nb::borrow<nb::dict>(value)[key], leaves));
    return Sample::dict(std::move(items));
  }
  if (PyTuple_Check(value.ptr())) {
    std::vector<Sample> parts;
    for (const nb::handle item : nb::borrow<nb::tuple>(value))
      parts.push_back(arrays_of(item, leaves));
    return Sample::tuple(std::move(parts));
  }
  leaves.push_back(is_texts(value) ? texts_of(value) : nullptr);
  return leaves.back() ? stand_in(*leaves.back()) : tensor_of(value);
}

}  // namespace

bool has_texts(nb::handle value, int depth) {
  check_depth(depth);
  const auto below = [depth](nb::handle item) { return has_texts(item, depth + 1); };
  if (PyDict_Check(value.ptr())) {
    const nb::object values = nb::steal(PyDict_Values(value.ptr()));
    return std::ranges::any_of(nb::borrow<nb::list>(values), below);
  }
  if (PyTuple_Check(value.ptr())) return std::ranges::any_of(nb::borrow<nb::tuple>(value), below);
  return is_texts(value);
}

Dataset text_slices(nb::handle value, const std::string& name) {
  std::vector<TextsPtr> leaves;
  const Dataset rows = Dataset::from_tensor_slices(arrays_of(value, leaves), {name, {}});
  ElementSpec spec = rows.element_spec();
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i]) spec.fields[i] = {spec.fields[i].path, leaves[i]->dtype, {}};
  MapOptions options{"text", 0, spec, false};
  return rows.map(
      [leaves](const Sample& in) {
        std::vector<Tensor> made = in.leaves();
        for (std::size_t i = 0; i < leaves.size(); ++i)
          if (leaves[i])
            made[i] = Tensor::bytes(leaves[i]->values[made[i].values<std::uint64_t>()[0]],
                                    leaves[i]->dtype);
        return Sample::assemble(in.structure(), std::move(made));
      },
      options);
}

}  // namespace penstock::python
