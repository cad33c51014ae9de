#include "log_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <penstock/error.h>

#include <filesystem>
#include <fstream>

#include "base/fault.h"
#include "base/temp_folder_for_tests.h"
#include "heard.h"
#include "nets.h"

namespace penstock::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class LogFileTest : public ::testing::Test {
 protected:
  ~LogFileTest() override { fault::disarm_all(); }
  TempFolder folder_;
};

TEST_F(LogFileTest, LinesThatCannotBeWrittenAreKeptReportedAndWrittenLater) {
  const std::string path = folder_.path("log");
  LogFile log("log x", path);
  log.begin("a\n");
  const Heard heard;
  fault::arm("log.write", 1);
  log.add("b\n");
  EXPECT_EQ(content(path), "a\n");
  EXPECT_THAT(log.problem(), AllOf(HasSubstr("log x"), HasSubstr("No space left")));
  EXPECT_THAT(heard.text(), HasSubstr("training continues"));
  log.add("c\n");
  EXPECT_EQ(content(path), "a\nb\nc\n");
  EXPECT_EQ(log.problem(), "");
}

TEST_F(LogFileTest, ABeginningThatCannotBeWrittenReplacesTheOldFileLater) {
  const std::string path = folder_.write("log", "of another run\n");
  LogFile log("log x", path);
  const Heard heard;
  fault::arm("log.write", 1);
  log.begin("a\n");
  EXPECT_EQ(content(path), "of another run\n");
  log.add("b\n");
  EXPECT_EQ(content(path), "a\nb\n");
}

TEST_F(LogFileTest, WhatAFailedWriteLeftIsCutOff) {
  const std::string path = folder_.path("log");
  LogFile log("log x", path);
  log.begin("a\n");
  std::ofstream(path, std::ios::app) << "half of a li";
  log.add("b\n");
  EXPECT_EQ(content(path), "a\nb\n");
}

TEST_F(LogFileTest, ADeviceIsAppendedToAndNeverReplaced) {
  LogFile log("log x", "/dev/full");
  const Heard heard;
  log.begin("");
  log.add("b\n");
  EXPECT_THAT(log.problem(), HasSubstr("No space left on device"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(LogFileTest, AWrongPathIsRefusedBeforeTraining) {
  EXPECT_THAT([&] { LogFile("log x", folder_.path("nowhere/log")).begin(""); },
              ThrowsMessage<ConfigError>(HasSubstr("create the folder")));
  EXPECT_THAT([&] { LogFile("log x", folder_.path()).begin(""); },
              ThrowsMessage<ConfigError>(HasSubstr("is a folder")));
}

TEST_F(LogFileTest, MemoryForWhatIsMissingIsBounded) {
  LogFile log("log x", "/dev/full");
  const Heard heard;
  log.begin("");
  for (int i = 0; i < 40; ++i) log.add(std::string(1U << 20U, 'x'));
  EXPECT_LT(heard.count("training continues"), 6U);
  EXPECT_THAT(log.problem(), HasSubstr("not complete"));
}

TEST_F(LogFileTest, AFullDiskUnderALogDoesNotEndTraining) {
  const std::string path = folder_.path("log.json");
  Model model(small_net());
  model.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
  const Heard heard;
  fault::arm("log.write", 3);  // the first line of the JSON log
  const History history = model.fit(
      points(64).batch(16),
      {.epochs = 3,
       .callbacks = {json_log(path), csv_log("/dev/full"), tensorboard(folder_.path("events"))},
       .show = Show::nothing});
  EXPECT_TRUE(history.complete);
  const std::string lines = content(path);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 3);
  ASSERT_EQ(history.problems.size(), 1U);
  EXPECT_THAT(history.problems[0], HasSubstr("/dev/full"));
}

}  // namespace
}  // namespace penstock::train
