// `penstock train`: runs penstock-train from the same folder, so that this command does not need
// torch. tested in train/tests/command.py
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <string>
#include <vector>

#include "command.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

/// The folder that contains this program.
std::string own_folder() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return ".";
  const std::string text(path.data(), static_cast<std::size_t>(size));
  return text.substr(0, text.rfind('/'));
}

}  // namespace

void run_train(int argc, char** argv) {
  const std::string beside = own_folder() + "/penstock-train";
  std::vector<char*> arguments(argv + 1, argv + argc);
  arguments.push_back(nullptr);
  ::execv(beside.c_str(), arguments.data());
  ::execvp("penstock-train", arguments.data());
  throw ConfigError("train: penstock-train is neither beside this program nor on the PATH", {},
                    "build it with make train; it needs torch");
}

void add_train(CLI::App& app) {
  app.add_subcommand("train", "train on a folder of images (needs torch); see train --help");
}

}  // namespace penstock::cli
