#include "penstock/plan.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "areas.h"
#include "interpreter.h"
#include "penstock/state.h"

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

nb::dict check(const Plan& plan, nb::handle number) {
  const std::uint64_t pass = whole_of("check", "pass_number", number);
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
    dict["wrong"] = str_of(found.wrong->what);
  } else {
    dict["wrong"] = nb::none();
  }
  return dict;
}

}  // namespace

void bind_plan(nb::module_& module) {
  module.def("state_with_epochs",
             [](const std::string& text, std::uint64_t epoch, std::uint64_t step) {
               State state = State::parse(text);
               state.epochs = State::Epochs{epoch, step};
               return state.to_json();
             });
  nb::class_<Plan> plan(module, "Plan", "What a loader will do, decided before anything runs.");
  plan.def_prop_ro(
      "steps", [](const Plan& self) { return count_or_none(self.steps()); },
      nb::sig("def steps(self) -> int | None"),
      "Steps of a pass; None if it is endless or not known before running.");
  plan.def_prop_ro(
      "samples", [](const Plan& self) { return count_or_none(self.samples()); },
      nb::sig("def samples(self) -> int | None"), "Samples that a pass delivers.");
  plan.def_prop_ro("batch_samples", &Plan::batch_samples, "The largest global batch.");
  plan.def_prop_ro("batch_bytes", &Plan::batch_bytes,
                   "Bytes of one batch of this process, if known.");
  plan.def_prop_ro("world", [](const Plan& self) { return self.shares().total; });
  plan.def_prop_ro("rank", [](const Plan& self) { return self.shares().first; });
  plan.def_prop_ro("tail_cost", tail_cost, "What the tails cost in each pass.");
  plan.def(
      "cut",
      [](const Plan& self, nb::handle step) { return self.cut(whole_of("cut", "step", step)); },
      nb::arg("step").none(), nb::sig("def cut(self, step: int) -> list[int]"),
      "Samples of each share of a step.");
  plan.def(
      "check", check, nb::arg("pass_number").none() = 0,
      nb::sig("def check(self, pass_number: int = 0) -> dict[str, typing.Any]"),
      "Walks through a pass without reading data; `wrong` is None if every sample comes once.");
  plan.def("explain", &Plan::explain, "The plan as readable text.");
  plan.def("serialize", &Plan::serialize, "The plan as JSON.");
  plan.def("__repr__", &Plan::explain);
}

}  // namespace penstock::python
