#pragma once
// One verb of the `penstock` command.

#include <CLI/CLI.hpp>

namespace penstock::cli {

/// Adds the verb to `app`; `code` receives its exit code when it runs.
void add_demo(CLI::App& app, int& code);

}  // namespace penstock::cli
