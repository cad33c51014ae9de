#include "report/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// Sets PENSTOCK_STATUS while it exists.
class StatusFolder {
 public:
  explicit StatusFolder(const std::string& folder) {
    setenv("PENSTOCK_STATUS", folder.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ~StatusFolder() { unsetenv("PENSTOCK_STATUS"); }  // NOLINT(concurrency-mt-unsafe)
  StatusFolder(const StatusFolder&) = delete;
  StatusFolder& operator=(const StatusFolder&) = delete;
};

TEST(StatusTest, AProcessThatLoadsDataHasAStatusUntilItsLoaderIsGone) {
  const TempFolder folder;
  const StatusFolder set(folder.path());
  {
    Loader loader(Dataset::range(1000).batch(10).with_options({.name = "numbers"}));
    for (int i = 0; i < 5; ++i) (void)loader.next();
    StatusWriter::shared()->write_now();
    const auto found = read_statuses(folder.path());
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].process, static_cast<std::uint64_t>(getpid()));
    EXPECT_TRUE(found[0].alive);
    EXPECT_GT(found[0].resident_bytes, 0U);
    ASSERT_EQ(found[0].runs.size(), 1U);
    EXPECT_EQ(found[0].runs[0].dataset, "numbers");
    EXPECT_EQ(found[0].runs[0].steps, 5U);
    EXPECT_EQ(found[0].runs[0].end_step, 100U);
    EXPECT_THAT(status_text(found), HasSubstr("numbers: epoch 0, step 5 of 100"));
  }
  EXPECT_TRUE(read_statuses(folder.path()).empty());
}

TEST(StatusTest, TheFileOfAProcessThatIsGoneSaysThatItEnded) {
  const TempFolder folder;
  constexpr std::uint64_t kNoProcess = 2'000'000'000;  // larger than any number of a process
  StatusWriter writer(folder.path(), kNoProcess);
  writer.write_now();
  const auto found = read_statuses(folder.path());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].alive);
  EXPECT_THAT(status_text(found), HasSubstr("This process ended without notice"));
}

TEST(StatusTest, OtherFilesAndDamagedOnesAreLeftOut) {
  const TempFolder folder;
  std::ofstream(folder.path() + "/penstock-12.status") << "nonsense";
  std::ofstream(folder.path() + "/penstock-x.status") << "nonsense";
  std::ofstream(folder.path() + "/notes.txt") << "nonsense";
  EXPECT_TRUE(read_statuses(folder.path()).empty());
  EXPECT_THAT(status_text({}), HasSubstr("No process"));
  EXPECT_THROW(read_statuses("/nowhere"), ConfigError);
}

TEST(StatusTest, AFolderThatCannotBeWrittenIsAnErrorThatNamesTheVariable) {
  try {
    const StatusWriter writer("/proc/nowhere", 1);
    FAIL();
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("PENSTOCK_STATUS"));
  }
}

}  // namespace
}  // namespace penstock
