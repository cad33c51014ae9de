// The tests may run under a launcher, as CI jobs do in some clusters: they ignore its variables and
// run as a single process.
#include <gtest/gtest.h>

#include <memory>

#include "base/launch_table_for_tests.h"

namespace penstock {
namespace {

class NoLauncher final : public testing::Environment {
 public:
  void SetUp() override { table_ = std::make_unique<LaunchTable>(); }
  void TearDown() override { table_.reset(); }

 private:
  std::unique_ptr<LaunchTable> table_;
};

// NOLINTNEXTLINE: the framework owns it
const testing::Environment* const kNoLauncher = testing::AddGlobalTestEnvironment(new NoLauncher);

TEST(NoLauncherTest, TestsIgnoreTheVariablesOfTheMachine) {
  EXPECT_NE(kNoLauncher, nullptr);
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "3", 1);
  EXPECT_EQ(find_world().source, "one process");
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
}

}  // namespace
}  // namespace penstock
