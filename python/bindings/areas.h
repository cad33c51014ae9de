#pragma once
// The areas of the module, one file each.

#include <nanobind/nanobind.h>

namespace penstock::python {

void bind_interpreter(nanobind::module_& module);
void bind_stacks(nanobind::module_& module);
void bind_errors(nanobind::module_& module);
void bind_dataset(nanobind::module_& module);
void bind_tables(nanobind::module_& module);
void bind_record_files(nanobind::module_& module);
void bind_image(nanobind::module_& module);
void bind_audio(nanobind::module_& module);
void bind_functions(nanobind::module_& module);
void bind_batch(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_report(nanobind::module_& module);
void bind_doctor(nanobind::module_& module);
void bind_loader(nanobind::module_& module);
void bind_loader_options(nanobind::module_& module);
void bind_worker_serve(nanobind::module_& module);
void bind_strategy(nanobind::module_& module);

}  // namespace penstock::python
