#pragma once
// One subcommand of the `penstock` command.

#include <CLI/CLI.hpp>
#include <cstdint>

namespace penstock::cli {

// Exit codes. After a signal it is 128 + its number: 130 for SIGINT, 143 for SIGTERM.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;   // it ran, and something failed or a check did not hold
inline constexpr int kRefused = 2;  // a mistake in the set-up: nothing was run

/// Adds the subcommand to `app`; `code` receives its exit code when it runs.
void add_demo(CLI::App& app, int& code);
void add_plan(CLI::App& app, int& code);
void add_verify(CLI::App& app, int& code);
void add_bench(CLI::App& app, int& code);
void add_pack(CLI::App& app, int& code);
void add_report(CLI::App& app, int& code);
void add_top(CLI::App& app, int& code);
void add_doctor(CLI::App& app, int& code);
void add_train(CLI::App& app);

/// `penstock train ...`: replaces this process by that program. Throws ConfigError if it is
/// missing.
void run_train(int argc, char** argv);

/// A check for options: explains what is needed if the text is not a whole number in [least, most].
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

}  // namespace penstock::cli
