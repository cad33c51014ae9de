// `penstock train`: hands over to penstock-train, which stands beside this program; so that the
// command itself needs no torch.
// tested in train/tests/command.py
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

/// The folder that this program is in.
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
  throw ConfigError("train: there is no penstock-train here or on the PATH", {},
                    "build it with make train; it needs torch");
}

void add_train(CLI::App& app) {
  app.add_subcommand("train", "trains a folder of pictures (needs torch); train --help says more");
}

}  // namespace penstock::cli
