#include "penstock/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/temp_folder_for_tests.h"
#include "base/thread.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using testing::HasSubstr;

class DoctorTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path(root_.path() + "/" + name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] MachineExamination found() const { return examine_machine({.root = root_.path()}); }

  TempFolder root_;
};

TEST_F(DoctorTest, ThisMachineHasTheThreadsThatPenstockUses) {
  const MachineExamination here = examine_machine();
  const auto cores = std::ranges::find(here.facts, "threads", &MachineFact::name);
  ASSERT_NE(cores, here.facts.end());
  EXPECT_THAT(cores->value, testing::StartsWith(std::to_string(usable_cores()) + ","));
  EXPECT_THAT(here.str(), HasSubstr("libjpeg"));
}

TEST_F(DoctorTest, EveryProblemHasARemedy) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  write("sys/fs/cgroup/pids.max", "12\n");
  write("proc/self/maps",
        "7f00-7f01 r-xp 0 08:01 1 /venv/torch/lib/libgomp-a34b3233.so.1\n"
        "7f02-7f03 r-xp 0 08:01 2 /venv/torch/lib/libgomp-a34b3233.so.1\n"
        "7f04-7f05 r-xp 0 08:01 3 /venv/mkl/libiomp5.so\n");
  const MachineExamination made = found();
  std::string all;
  for (const MachineProblem& problem : made.problems) {
    EXPECT_FALSE(problem.remedy.empty()) << problem.what;
    all += problem.what + "\n";
  }
  EXPECT_THAT(all, HasSubstr("the container may use 0.50 of a core"));
  EXPECT_THAT(all, HasSubstr("only 12 processes and threads"));
  EXPECT_THAT(all, HasSubstr("2 OpenMP runtimes are loaded"));
  EXPECT_THAT(all, HasSubstr("/dev/shm is missing"));
}

TEST_F(DoctorTest, OneOpenMpRuntimeIsNoProblem) {
  write("proc/self/maps", "7f00-7f01 r-xp 0 08:01 1 /venv/torch/lib/libgomp-a34b3233.so.1\n");
  EXPECT_THAT(found().str(), testing::Not(HasSubstr("OpenMP")));
}

TEST_F(DoctorTest, TheDiskOfAFolderIsMeasured) {
  write("data/a/1.bin", std::string(1000, 'x'));
  write("data/2.bin", std::string(1000, 'x'));
  const MachineExamination made = examine_machine({.data = root_.path() + "/data"});
  EXPECT_THAT(made.str(), HasSubstr("2 files read, one after the other"));
  EXPECT_THROW(examine_machine({.data = root_.path() + "/data/2.bin"}), ConfigError);
}

TEST_F(DoctorTest, TheJsonHasTheSameFacts) {
  const MachineExamination made = examine_machine();
  const auto json = parse_json(made.json());
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["facts"].size(), made.facts.size());
  EXPECT_EQ((*json)["problems"].size(), made.problems.size());
}

}  // namespace
}  // namespace penstock
