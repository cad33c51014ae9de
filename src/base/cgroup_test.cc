#include "base/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temp_folder_for_tests.h"

namespace penstock {
namespace {

class CgroupTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path(root_.path() + "/" + name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] CgroupLimits limits() const { return cgroup_limits(root_.path()); }

  TempFolder root_;
};

TEST_F(CgroupTest, WithoutGroupsNothingIsLimited) {
  const CgroupLimits found = limits();
  EXPECT_FALSE(found.cores || found.memory_max || found.memory_left || found.pids_max);
}

TEST_F(CgroupTest, TheSmallestLimitOfVersion2Counts) {
  write("proc/self/cgroup", "0::/user.slice/job\n");
  write("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/user.slice/job/memory.max", "4000000\n");
  write("sys/fs/cgroup/user.slice/job/memory.current", "1500000\n");
  write("sys/fs/cgroup/user.slice/job/memory.stat", "anon 900000\ninactive_file 500000\n");
  write("sys/fs/cgroup/user.slice/job/pids.max", "max\n");
  write("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/user.slice/memory.max", "9000000\n");
  write("sys/fs/cgroup/user.slice/pids.max", "100\n");
  const CgroupLimits found = limits();
  EXPECT_EQ(found.cores, 1.5);
  EXPECT_EQ(found.memory_max, 4'000'000U);
  EXPECT_EQ(found.memory_left, 3'000'000U);
  EXPECT_EQ(found.pids_max, 100U);
}

TEST_F(CgroupTest, AGroupThatIsNotVisibleLeavesTheMount) {
  write("proc/self/cgroup", "0::/not/here\n");
  write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  EXPECT_EQ(limits().cores, 2);
  EXPECT_EQ(limits().memory_max, 1000U);
  EXPECT_FALSE(limits().memory_left) << "the use is not known";
}

TEST_F(CgroupTest, Version1HasAFolderForEachController) {
  write("proc/self/cgroup",
        "9:memory:/box\n4:cpu,cpuacct:/box\n2:pids:/box\n1:name=systemd:/box\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2000\n");
  write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "2500\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/pids/box/pids.max", "77\n");
  const CgroupLimits found = limits();
  EXPECT_EQ(found.cores, 0.5);
  EXPECT_EQ(found.memory_max, 2000U);
  EXPECT_EQ(found.memory_left, 0U);
  EXPECT_EQ(found.pids_max, 77U);
}

TEST_F(CgroupTest, NonsenseIsNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::\n::::\n0::/a/../b\n");
  write("sys/fs/cgroup/cpu.max", "x y\n");
  write("sys/fs/cgroup/memory.max", "-5\n");
  const CgroupLimits found = limits();
  EXPECT_FALSE(found.cores || found.memory_max || found.pids_max);
}

}  // namespace
}  // namespace penstock
