// tested in tests/command_test.py
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string_view>

#include "base/fault.h"
#include "codec/versions.h"
#include "command.h"
#include "penstock/error.h"

namespace {

int parse_and_run(int argc, char** argv) {
  CLI::App app("penstock: a data loader in which every sample comes once per epoch");
  app.set_version_flag("--version",
                       fmt::format("{}\n{}", PENSTOCK_VERSION, penstock::codec_versions()));
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 success, 1 a failure or a check that does not hold, 2 refused before anything "
      "ran,\n"
      "130 and 143 after SIGINT and SIGTERM.");
  int code = penstock::cli::kDone;
  penstock::cli::add_demo(app, code);
  penstock::cli::add_plan(app, code);
  penstock::cli::add_verify(app, code);
  penstock::cli::add_bench(app, code);
  penstock::cli::add_pack(app, code);
  penstock::cli::add_report(app, code);
  penstock::cli::add_top(app, code);
  penstock::cli::add_doctor(app, code);
  penstock::cli::add_train(app);
  try {
    if (argc > 1 && std::string_view(argv[1]) == "train") penstock::cli::run_train(argc, argv);
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) fmt::print("{}", app.help());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "penstock: {}\n", error.what());
    return penstock::cli::kRefused;
  } catch (const penstock::ConfigError& error) {
    fmt::print(stderr, "penstock: {}\n", error.what());
    return penstock::cli::kRefused;
  }
  return code;
}

/// Output that could not be written is a failure even if everything else succeeded. If there is no
/// output at all (`>&-`), nobody needs it.
int with_output(int code) {
  const bool failed_before = std::ferror(stdout) != 0 || !std::cout.flush();
  const bool failed_now = std::fflush(stdout) != 0;
  if (!failed_before && (!failed_now || errno == EBADF)) return code;
  fmt::print(stderr, "penstock: the output could not be written{}\n",
             failed_now ? fmt::format(": {}", std::strerror(errno)) : "");
  return code == penstock::cli::kDone ? penstock::cli::kFailed : code;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef PENSTOCK_FAULTS
  if (const char* const faults = std::getenv("PENSTOCK_FAULTS");  // NOLINT: no threads yet
      faults != nullptr && !penstock::fault::arm_listed(faults)) {
    fmt::print(stderr, "penstock: PENSTOCK_FAULTS must be like name:nth, got {}\n", faults);
    return penstock::cli::kRefused;
  }
#endif
  try {
    return with_output(parse_and_run(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "penstock: {}\n", error.what());
    return penstock::cli::kFailed;
  }
}
