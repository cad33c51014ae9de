// `penstock doctor`: what this machine allows, what penstock uses of it, what is wrong. tested in
// tests/report_test.py
#include <fmt/core.h>

#include <memory>
#include <string>

#include "command.h"
#include "penstock/doctor.h"

namespace penstock::cli {

void add_doctor(CLI::App& app, int& code) {
  struct DoctorCommand {
    std::string data;
    bool json = false;
  };
  auto command = std::make_shared<DoctorCommand>();
  CLI::App* const verb = app.add_subcommand(
      "doctor", "show the limits of this machine, what penstock uses of it, and what is wrong");
  verb->add_option("--data", command->data, "a folder with training data: how fast it is read");
  verb->add_flag("--json", command->json, "as JSON");
  verb->callback([command, &code] {
    const MachineExamination found = examine_machine({.data = command->data});
    fmt::print("{}\n", command->json ? found.json() : found.str());
    code = found.problems.empty() ? kDone : kFailed;
  });
}

}  // namespace penstock::cli
