// Reports as Python sees them: dicts of numbers, with the native object beside them.
#include "penstock/report.h"

#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "areas.h"
#include "interpreter.h"

namespace penstock::python {
namespace {

nb::list strings_of(const std::vector<std::string>& lines) {
  nb::list list;
  for (const std::string& line : lines) list.append(str_of(line));
  return list;
}

nb::list ops_of(const Report& report) {
  nb::list ops;
  for (const OpReport& op : report.ops) {
    nb::dict dict;
    dict["name"] = str_of(op.name);
    dict["calls"] = op.calls;
    dict["rows"] = op.rows;
    dict["seconds"] = op.seconds;
    dict["share"] = op.share;
    dict["p50"] = op.p50;
    dict["p99"] = op.p99;
    dict["bytes"] = op.bytes;
    dict["cpu_seconds"] = op.cpu_seconds;
    dict["lock_seconds"] = op.lock_seconds;
    dict["process_seconds"] = op.process_seconds;
    dict["read_seconds"] = op.read_seconds;
    dict["retry_seconds"] = op.retry_seconds;
    dict["blocked_seconds"] = op.blocked_seconds;
    ops.append(dict);
  }
  return ops;
}

nb::list slowest_of(const Report& report) {
  nb::list slowest;
  for (const SlowSample& slow : report.slowest) {
    nb::dict dict;
    dict["op"] = str_of(slow.op);
    dict["sample"] = str_of(slow.sample);
    if (!slow.file.empty()) dict["file"] = str_of(slow.file);
    dict["rows"] = slow.rows;
    dict["step"] = slow.step;
    dict["seconds"] = slow.seconds;
    slowest.append(dict);
  }
  return slowest;
}

nb::list replicas_of(const Report& report) {
  nb::list replicas;
  for (const ReplicaReport& replica : report.replicas) {
    nb::dict dict;
    dict["name"] = str_of(replica.name);
    dict["rows"] = replica.rows;
    dict["busy_seconds"] = replica.busy_seconds;
    dict["wait_seconds"] = replica.wait_seconds;
    replicas.append(dict);
  }
  return replicas;
}

nb::list what_if_of(const Report& report) {
  nb::list changes;
  for (const WhatIf& each : report.what_if) {
    nb::dict dict;
    dict["change"] = str_of(each.change);
    dict["gain"] = each.gain;
    dict["text"] = str_of(each.text);
    changes.append(dict);
  }
  return changes;
}

nb::dict fields_of(const Report& report) {
  nb::dict fields;
  fields["epoch"] = report.epoch;
  fields["steps"] = report.steps;
  fields["rows"] = report.rows;
  fields["cause"] = cause_name(report.cause);
  fields["verdict"] = str_of(report.verdict);
  fields["advice"] = str_of(report.advice);
  fields["wall_seconds"] = report.wall_seconds;
  fields["wait_seconds"] = report.wait_seconds;
  fields["wait_share"] = report.wait_share();
  fields["waits"] = report.waits;
  fields["consumer_seconds"] = report.consumer_seconds;
  fields["input_rows_per_second"] = report.input_rows_per_second;
  fields["consumer_rows_per_second"] = report.consumer_rows_per_second;
  fields["tasks"] = report.tasks;
  fields["work_seconds"] = report.work_seconds;
  fields["skipped"] = report.skipped;
  fields["retried"] = report.retried;
  fields["ops"] = ops_of(report);
  fields["slowest"] = slowest_of(report);
  fields["replicas"] = replicas_of(report);
  fields["what_if"] = what_if_of(report);
  fields["retries"] = strings_of(report.retries);
  fields["decisions"] = strings_of(report.decisions);
  fields["cut"] = str_of(report.cut);
  return fields;
}

}  // namespace

void bind_report(nb::module_& module) {
  nb::class_<Report> report(module, "Report", "What one epoch did.");
  report.def_rw("epoch", &Report::epoch);
  report.def("fields", fields_of, nb::sig("def fields(self) -> dict[str, typing.Any]"));
  report.def("save", [](const Report& self, const nb::bytes& file) {
    const std::string path(file.c_str(), file.size());
    const Unlocked unlocked;
    self.save(path);
  });
  report.def("compare", [](const Report& self, const Report& before) {
    return str_of(compare_reports(before, self));
  });
  report.def("__str__", [](const Report& self) { return str_of(self.str()); });
  module.def("read_report", [](const nb::bytes& file) {
    const std::string path(file.c_str(), file.size());
    const Unlocked unlocked;
    return read_report(path);
  });
}

}  // namespace penstock::python
