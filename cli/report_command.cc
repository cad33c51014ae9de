// `penstock report`: shows what a run recorded, or writes it as a page. tested in
// tests/report_test.py
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "command.h"
#include "penstock/error.h"
#include "penstock/io.h"
#include "penstock/report.h"
#include "report/words.h"

namespace penstock::cli {
namespace {

struct ReportCommand {
  std::string trace;
  std::string other;
  std::string html;
};

/// A trace may be written by anybody.
std::string shown(std::string text) {
  return without_controls(std::move(text), true);
}

/// The newest trace of a folder; a file is returned as it is.
std::string trace_of(const std::string& path) {
  const auto entry = Io::real().look(path);
  if (!entry)
    throw ConfigError(fmt::format("report: {}", entry.failure().message), {},
                      "name a trace, or the folder that was given as report_dir");
  if ((*entry).kind != FolderEntry::Kind::folder) return path;
  const auto files = Io::real().list(path);
  if (!files) throw ConfigError(fmt::format("report: {}", files.failure().message));
  std::vector<std::pair<std::int64_t, std::string>> traces;
  for (const FolderEntry& file : *files)
    if (file.kind == FolderEntry::Kind::file && file.name.ends_with(".json"))
      traces.emplace_back(file.modified_ns, file.name);
  if (traces.empty())
    throw ConfigError(fmt::format("report: there is no trace in {}", printable(path)), {},
                      "traces are written with report_dir, or by Report::save(\"run.json\")");
  return path + "/" + std::ranges::max(traces).second;
}

void run_report(const ReportCommand& command, int& code) {
  const std::string path = trace_of(command.trace);
  const Report report = read_report(path);
  if (!command.html.empty()) report.save(command.html);
  if (!command.other.empty()) {
    fmt::print("{}\n", shown(compare_reports(report, read_report(trace_of(command.other)))));
  } else if (!command.html.empty()) {
    fmt::print("{}\n{}\n", shown(report.verdict), command.html);
  } else {
    fmt::print("{}: {}\n", printable(path), shown(report.str()));
  }
  code = kDone;
}

}  // namespace

void add_report(CLI::App& app, int& code) {
  auto command = std::make_shared<ReportCommand>();
  CLI::App* const verb = app.add_subcommand(
      "report", "show why a recorded epoch was as fast as it was, or write a page about it");
  verb->add_option("trace", command->trace,
                   "a trace (.json), or the folder given as report_dir: its newest one")
      ->required();
  verb->add_option("after", command->other, "a second one: what changed since the first");
  verb->add_option("--html", command->html, "write a page that any browser opens")
      ->check([](const std::string& name) {
        return name.ends_with(".html") ? std::string() : std::string("must end in .html");
      });
  verb->callback([command, &code] { run_report(*command, code); });
}

}  // namespace penstock::cli
