#pragma once
// What this machine allows, what penstock uses of it, and what is wrong with it.

#include <string>
#include <vector>

namespace penstock {

/// A line about the machine: "cores", "2 of 8 (affinity)".
struct MachineFact {
  std::string name;
  std::string value;
};
/// Something that will make training slow or fail.
struct MachineProblem {
  std::string what;
  std::string remedy;
};
struct MachineExamination {
  std::vector<MachineFact> facts = {};
  std::vector<MachineProblem> problems = {};
  /// Facts, then problems with their remedies.
  [[nodiscard]] std::string str() const;
  [[nodiscard]] std::string json() const;
};

struct ExamineOptions {
  std::string data = {};  // a folder with training data: its disk is measured by reading some files
  std::string root = {};  // for tests: where /proc and /sys are found
};

/// Takes a few milliseconds, with `data` up to a second. Throws ConfigError if `data` is no folder.
MachineExamination examine_machine(const ExamineOptions& options = {});

}  // namespace penstock
