// `penstock top`: what the processes on this machine that load data do right now. tested in
// tests/report_test.py
#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "command.h"
#include "interrupt.h"
#include "penstock/error.h"
#include "report/status.h"

namespace penstock::cli {
namespace {

struct TopCommand {
  std::uint64_t process = 0;
  std::string folder;
  bool once = false;
};

std::string text_now(const TopCommand& command) {
  std::vector<ProcessStatus> processes = read_statuses(command.folder);
  if (command.process != 0) {
    std::erase_if(processes,
                  [&](const ProcessStatus& each) { return each.process != command.process; });
    if (processes.empty())
      throw ConfigError(
          fmt::format("top: process {} has no status in {}", command.process, command.folder), {},
          "start it with PENSTOCK_STATUS set to that folder");
  }
  return status_text(processes);
}

void run_top(TopCommand command, int& code) {
  if (command.folder.empty()) {
    const char* const set = std::getenv("PENSTOCK_STATUS");  // NOLINT(concurrency-mt-unsafe)
    if (set == nullptr || *set == 0)
      throw ConfigError("top: no folder was named", {},
                        "set PENSTOCK_STATUS=FOLDER here and where the programs start, or pass "
                        "--folder FOLDER");
    command.folder = set;
  }
  code = kDone;
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  if (command.once || !terminal) {
    fmt::print("{}\n", text_now(command));
    return;
  }
  Interrupt interrupt;
  while (interrupt.signal() == 0) {
    fmt::print("\033[H\033[2J{}\n\nCtrl-C ends this.\n", text_now(command));
    std::fflush(stdout);
    for (int i = 0; i < 10 && interrupt.signal() == 0; ++i)
      sleep_thread(std::chrono::milliseconds(100));
  }
}

}  // namespace

void add_top(CLI::App& app, int& code) {
  auto command = std::make_shared<TopCommand>();
  CLI::App* const verb =
      app.add_subcommand("top", "show what programs that load data do right now");
  verb->add_option("process", command->process, "the number of one process; default: all")
      ->check(whole_number(1, 1ULL << 31));
  verb->add_option("--folder", command->folder,
                   "the folder of their status files; default: PENSTOCK_STATUS");
  verb->add_flag("--once", command->once, "print once, without refreshing");
  verb->callback([command, &code] { run_top(*command, code); });
}

}  // namespace penstock::cli
