// Converts the engine's errors to Python's: a user's exception is raised unchanged, with a note of
// where it happened; everything else is a class of penstock.errors.
#include <fmt/format.h>

#include <exception>
#include <string>

#include "areas.h"
#include "interpreter.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

nb::dict where_dict(const Where& where) {
  nb::dict dict;
  if (!where.dataset.empty()) dict["dataset"] = str_of(where.dataset);
  if (!where.op.empty()) dict["op"] = str_of(where.op);
  if (!where.field.empty()) dict["field"] = str_of(where.field);
  if (!where.file.empty()) dict["file"] = str_of(where.file);
  if (where.sample) {
    dict["source"] = where.sample->source;
    dict["sample"] = where.sample->number;
  }
  if (where.epoch) dict["epoch"] = *where.epoch;
  if (where.step) dict["step"] = *where.step;
  if (where.position) dict["position"] = *where.position;
  return dict;
}

void set_error(const char* name, const Error& error) {
  try {
    const nb::object type = nb::module_::import_("penstock.errors").attr(name);
    const nb::object value = type(str_of(error.message()), where_dict(error.where()),
                                  str_of(error.where().text()), str_of(error.remedy()));
    PyErr_SetObject(type.ptr(), value.ptr());
  } catch (nb::python_error& inner) {
    inner.restore();
  }
}

void set_sample_error(const SampleError& error) {
  const std::exception_ptr cause = error.cause();
  if (cause) {
    try {
      std::rethrow_exception(cause);
    } catch (const Raised& raised) {
      std::string note = fmt::format("penstock: {}", error.where().text());
      if (!error.remedy().empty()) note += fmt::format(" -> {}", error.remedy());
      return restore_raised(raised, note);
    } catch (...) {  // not from Python: use the message
    }
  }
  set_error("SampleError", error);
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const SampleError& error) {
    set_sample_error(error);
  } catch (const ConfigError& error) {
    set_error("ConfigError", error);
  } catch (const StateError& error) {
    set_error("StateError", error);
  } catch (const ResourceError& error) {
    set_error("ResourceError", error);
  } catch (const IoError& error) {
    set_error("IoError", error);
  } catch (const CancelledError& error) {
    set_error("CancelledError", error);
  } catch (const Error& error) {
    set_error("InternalError", error);
  } catch (const Raised& raised) {
    restore_raised(raised, "");
  }
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator(translate);
}

}  // namespace penstock::python
