#pragma once
// What nulls become, from Python.

#include <nanobind/nanobind.h>

#include <map>
#include <string>

#include "penstock/arrow.h"

namespace penstock::python {

/// By column; None becomes the empty list.
std::map<std::string, NullValue> nulls_of(const nanobind::dict& nulls);

}  // namespace penstock::python
