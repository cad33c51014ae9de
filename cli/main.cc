#include <fmt/core.h>

#include "command.h"
#include "penstock/error.h"

int main(int argc, char** argv) {
  CLI::App app("penstock: training input that arrives once, evenly and in time");
  app.set_version_flag("--version", PENSTOCK_VERSION);
  app.require_subcommand(1);
  int code = 0;
  penstock::cli::add_demo(app, code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const penstock::Error& error) {
    fmt::print(stderr, "penstock: {}\n", error.what());
    return 1;
  }
  return code;
}
