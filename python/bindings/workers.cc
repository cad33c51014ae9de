#include "workers.h"

#include <string>
#include <utility>

#include "interpreter.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

thread_local bool in_this_process = false;

class PythonHost final : public WorkerHost {
 public:
  void check_signals() override { look_for_signals(); }
  void rethrow(const std::string& sent) override {
    with_interpreter([&] {
      const nb::bytes bytes(sent.data(), sent.size());
      const nb::object arrived = nb::module_::import_("penstock.travel").attr("received")(bytes);
      const nb::object raised = arrived[0];
      // What led to an error stays in the worker, and with it whether it may pass.
      if (const int number = nb::cast<int>(arrived[1]); number != 0)
        throw UserOsError(number, text_of(raised), hold(raised));
      PyErr_SetObject(raised.type().ptr(), raised.ptr());
      throw nb::python_error();
    });
    throw InternalError("an exception of a worker got lost");
  }
  void warn_of_global_use(const std::string& title) override {
    with_interpreter(
        [&] { nb::module_::import_("penstock.randomness").attr("tell_of_global_use")(title); });
  }
  bool forked() override { return forked_while_running(); }
};

}  // namespace

std::shared_ptr<WorkerPool> python_worker_pool(const WorkerSetup& setup) {
  static PythonHost host;
  WorkerPoolOptions options;
  options.title = setup.program.title;
  options.workers = setup.workers;
  options.make_processes = [program = std::make_shared<const WorkerProgram>(setup.program)](
                               unsigned count) { return spawned_processes(program, count); };
  options.host = &host;
  return std::make_shared<WorkerPool>(std::move(options));
}

WorkerLeases::~WorkerLeases() {
  if (forked_while_running()) return;
  for (const auto& pool : pools_) pool->give_back();
}

void WorkerLeases::rest() const {
  for (const auto& pool : pools_) pool->rest();
}

std::vector<int> WorkerLeases::process_ids() const {
  std::vector<int> ids;
  for (const auto& pool : pools_)
    for (const int id : pool->process_ids()) ids.push_back(id);
  return ids;
}

InThisProcess::InThisProcess(bool so) : before_(in_this_process) {
  in_this_process = in_this_process || so;
}

InThisProcess::~InThisProcess() {
  in_this_process = before_;
}

bool InThisProcess::now() {
  return in_this_process;
}

}  // namespace penstock::python
