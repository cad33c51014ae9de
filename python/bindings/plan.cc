#include "penstock/plan.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "areas.h"
#include "interpreter.h"

namespace penstock::python {
namespace {

nb::object count_or_none(const std::optional<Cardinality>& count) {
  if (!count || !count->is_counted()) return nb::none();
  return nb::int_(count->count());
}

nb::dict tail_cost(const Plan& plan) {
  const TailCost cost = plan.tail_cost();
  nb::dict dict;
  dict["dropped"] = cost.dropped;
  dict["repeated"] = cost.repeated;
  dict["rows"] = cost.rows;
  dict["padded"] = cost.padded;
  return dict;
}

nb::dict check(const Plan& plan, std::uint64_t pass) {
  PassCheck found;
  {
    const Unlocked unlocked;
    found = plan.check(pass);
  }
  nb::dict dict;
  dict["steps"] = found.steps;
  dict["samples"] = found.samples;
  dict["repeated"] = found.repeated;
  dict["dropped"] = found.dropped;
  if (found.wrong) {
    dict["wrong"] = nb::str(found.wrong->what.c_str());
  } else {
    dict["wrong"] = nb::none();
  }
  return dict;
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<Plan> plan(module, "Plan", "What a loader will do, decided before anything runs.");
  plan.def_prop_ro(
      "steps", [](const Plan& self) { return count_or_none(self.steps()); },
      nb::sig("def steps(self) -> int | None"),
      "Steps of a pass; None where there is no end, or only running shows it.");
  plan.def_prop_ro(
      "samples", [](const Plan& self) { return count_or_none(self.samples()); },
      nb::sig("def samples(self) -> int | None"), "Samples that the steps of a pass deliver.");
  plan.def_prop_ro("batch_samples", &Plan::batch_samples, "The largest global batch.");
  plan.def_prop_ro("batch_bytes", &Plan::batch_bytes, "Bytes of one batch here, if known.");
  plan.def_prop_ro("world", [](const Plan& self) { return self.shares().total; });
  plan.def_prop_ro("rank", [](const Plan& self) { return self.shares().first; });
  plan.def_prop_ro("tail_cost", tail_cost, "What the tails cost each time through.");
  plan.def("cut", &Plan::cut, nb::arg("step"), "Samples of each share of a step.");
  plan.def("check", check, nb::arg("pass_number") = 0,
           "Walks through a pass without data; `wrong` is None when every sample comes once.");
  plan.def("explain", &Plan::explain, "The plan in words.");
  plan.def("serialise", &Plan::serialise, "The plan as JSON.");
  plan.def("__repr__", &Plan::explain);
}

}  // namespace penstock::python
