#pragma once
// Slices of lists of text: file names, labels, sentences.

#include <string>

#include "interpreter.h"
#include "penstock/dataset.h"

namespace penstock::python {

/// True if `value`, in dicts and tuples, has a list or an array of str or bytes.
bool has_texts(nb::handle value, int depth = 0);
/// Like Dataset::from_tensor_slices, with one str or bytes per sample for each such list.
Dataset text_slices(nb::handle value, const std::string& name);

}  // namespace penstock::python
