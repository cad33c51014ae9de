// How checkpoints come into their folder and leave it, and what a resume makes of a folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <penstock/train/checkpoint.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/fault.h"
#include "base/temp_folder_for_tests.h"
#include "checkpoint_files.h"
#include "heard.h"
#include "nets.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

class CheckpointFolderTest : public ::testing::Test {
 protected:
  ~CheckpointFolderTest() override { fault::disarm_all(); }

  [[nodiscard]] std::string where() const { return folder_.path("c"); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(where()))
      found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found;
  }
  void damage(const std::string& name) const {
    const std::string file = folder_.path("c/" + name + "/model.safetensors");
    std::fstream open(file, std::ios::in | std::ios::out | std::ios::binary);
    open.seekp(-1, std::ios::end);
    open.put('\x55');
  }
  [[nodiscard]] std::uint64_t iteration_at(const std::string& path) const {
    return load_checkpoint(path).iteration;
  }

  TempFolder folder_;
};

Checkpoint of_run(const std::string& run, std::uint64_t iteration) {
  Checkpoint made;
  made.model = {{"w", torch::full({4}, static_cast<double>(iteration))}};
  made.data = made.sums = "{}";
  made.history = "[]";
  made.optimizer_name = "sgd";
  made.run = run;
  made.iteration = iteration;
  return made;
}

TEST_F(CheckpointFolderTest, ASaveNeverRemovesWhatItWroteNorAnotherRunsCheckpoints) {
  save_checkpoint(where(), of_run("oldest", 5));
  for (const std::uint64_t iteration : {50, 75, 100})
    save_checkpoint(where(), of_run("old", iteration));
  for (const std::uint64_t iteration : {25, 30, 35, 40}) {
    const std::string path = save_checkpoint(where(), of_run("new", iteration), 2);
    EXPECT_EQ(iteration_at(path), iteration);
  }
  EXPECT_THAT(names(), ElementsAre("step-0000000005", "step-0000000035", "step-0000000040",
                                   "step-0000000050", "step-0000000075", "step-0000000100"));
}

TEST_F(CheckpointFolderTest, OnlyWholeCheckpointsCountAsKept) {
  for (const std::uint64_t iteration : {10, 20, 30})
    save_checkpoint(where(), of_run("a", iteration), 3);
  fs::remove(folder_.path("c/step-0000000020/model.safetensors"));
  save_checkpoint(where(), of_run("a", 40), 3);
  EXPECT_EQ(iteration_at(folder_.path("c/step-0000000010")), 10U);
  save_checkpoint(where(), of_run("a", 50), 3);
  EXPECT_FALSE(fs::exists(folder_.path("c/step-0000000010")));
}

TEST_F(CheckpointFolderTest, ANewRunIsRefusedWhereNewerCheckpointsAre) {
  save_checkpoint(where(), of_run("old", 100));
  EXPECT_THAT([&] { claim_folder(where(), 0, /*resumed=*/false); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("step-0000000100 of another run"), HasSubstr("--resume"))));
  EXPECT_THAT([&] { claim_folder(where(), 50, /*resumed=*/true); },
              ThrowsMessage<ConfigError>(HasSubstr("step-0000000100")));
  EXPECT_NO_THROW(claim_folder(where(), 100, /*resumed=*/true));
}

TEST_F(CheckpointFolderTest, AResumedRunSetsTornNewerOnesAside) {
  for (const std::uint64_t iteration : {10, 20}) save_checkpoint(where(), of_run("a", iteration));
  damage("step-0000000020");
  const Heard heard;
  claim_folder(where(), 10, /*resumed=*/true);
  EXPECT_THAT(names(), ElementsAre("step-0000000010", "unusable-step-0000000020-1"));
  EXPECT_THAT(heard.text(), HasSubstr("unusable-step-0000000020-1"));
}

TEST_F(CheckpointFolderTest, FitRefusesTheFolderOfAnotherRunAndAResumedFitDoesNot) {
  const auto fit = [&](const std::string& resume, std::uint64_t epochs) {
    Model model(small_net());
    model.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
    return model.fit(points(64).batch(16), {.epochs = epochs,
                                            .callbacks = {checkpoints(where(), {.keep = 2})},
                                            .resume = resume,
                                            .show = Show::nothing});
  };
  EXPECT_EQ(fit("", 3).iterations, 12U);
  EXPECT_THROW((void)fit("", 1), ConfigError);
  EXPECT_EQ(fit(where(), 4).iterations, 16U);
  EXPECT_THAT(names(), ElementsAre("step-0000000012", "step-0000000016"));
  const auto run = [&](const char* name) { return run_of(folder_.path(name)); };
  EXPECT_EQ(run("c/step-0000000012"), run("c/step-0000000016"));
  EXPECT_EQ(run("c/step-0000000012")->size(), 16U);
}

TEST_F(CheckpointFolderTest, WhenAllAreTornAResumeIsAStateErrorAndNothingIsLost) {
  for (const std::uint64_t iteration : {10, 20}) save_checkpoint(where(), of_run("a", iteration));
  damage("step-0000000010");
  damage("step-0000000020");
  const Heard heard;
  for (const bool skip_unreadable : {false, true})
    EXPECT_THAT([&] { (void)newest_checkpoint(where(), skip_unreadable); },
                ThrowsMessage<StateError>(HasSubstr("none of the 2 checkpoints")));
  EXPECT_THAT(names(), ElementsAre("step-0000000010", "step-0000000020"));
}

TEST_F(CheckpointFolderTest, ACheckpointThatMayNotBeReadIsAStateErrorUnlessAnOlderOneIsAskedFor) {
  for (const std::uint64_t iteration : {10, 20}) save_checkpoint(where(), of_run("a", iteration));
  fault::arm("checkpoint.denied", 1);
  EXPECT_THAT(
      [&] { (void)newest_checkpoint(where()); },
      ThrowsMessage<StateError>(AllOf(HasSubstr("step-0000000020"), HasSubstr("Permission denied"),
                                      HasSubstr("--resume-older"))));
  fault::arm("checkpoint.denied", 1);
  const Heard heard;
  EXPECT_EQ(iteration_at(newest_checkpoint(where(), /*skip_unreadable=*/true).value()), 10U);
  EXPECT_THAT(heard.text(), HasSubstr("step-0000000020 cannot be read"));
}

TEST_F(CheckpointFolderTest, AnErrorThatMayPassIsAnIoErrorAndNoTornCheckpoint) {
  save_checkpoint(where(), of_run("a", 20));
  fault::arm("checkpoint.io_error", 2);
  EXPECT_THAT([&] { (void)newest_checkpoint(where()); },
              ThrowsMessage<IoError>(AllOf(HasSubstr("Input/output error"), HasSubstr("again"))));
  EXPECT_EQ(iteration_at(newest_checkpoint(where()).value()), 20U);
}

TEST_F(CheckpointFolderTest, ASignalDuringAnOpenIsNoError) {
  save_checkpoint(where(), of_run("a", 20));
  fault::arm("checkpoint.open_interrupted", 1);
  EXPECT_EQ(iteration_at(newest_checkpoint(where()).value()), 20U);
  EXPECT_GT(fault::hits()["checkpoint.open_interrupted"], 1U);
}

TEST_F(CheckpointFolderTest, ANamedCheckpointSurvivesASaveThatFailsBetweenTwoRenames) {
  save_checkpoint_as(where(), "best", of_run("a", 10));
  fault::arm("checkpoint.no_exchange", 1);  // an old file system
  fault::arm("checkpoint.second_rename", 1);
  EXPECT_THROW(save_checkpoint_as(where(), "best", of_run("a", 20)), IoError);
  EXPECT_EQ(iteration_at(folder_.path("c/best")), 10U);
  EXPECT_THAT(names(), ElementsAre("best"));
  fault::arm("checkpoint.no_exchange", 1);
  save_checkpoint_as(where(), "best", of_run("a", 20));
  EXPECT_EQ(iteration_at(folder_.path("c/best")), 20U);
  EXPECT_THAT(names(), ElementsAre("best"));
}

TEST_F(CheckpointFolderTest, WhereNamesCanBeExchangedNoMomentIsWithoutACheckpoint) {
  save_checkpoint_as(where(), "best", of_run("a", 10));
  fault::arm("checkpoint.second_rename", 1);  // never comes to that
  save_checkpoint_as(where(), "best", of_run("a", 20));
  EXPECT_EQ(iteration_at(folder_.path("c/best")), 20U);
  EXPECT_EQ(fault::hits()["checkpoint.second_rename"], 0U);
}

TEST_F(CheckpointFolderTest, WhatAKilledSaveMovedAwayIsFoundUsedAndPutBack) {
  save_checkpoint_as(where(), "best", of_run("a", 10));
  save_checkpoint(where(), of_run("a", 20));
  fs::rename(folder_.path("c/best"), folder_.path("c/.best.old"));
  fs::rename(folder_.path("c/step-0000000020"), folder_.path("c/.step-0000000020.old"));
  EXPECT_EQ(iteration_at(newest_checkpoint(folder_.path("c/best")).value()), 10U);
  EXPECT_EQ(iteration_at(newest_checkpoint(where()).value()), 20U);
  claim_folder(where(), 20, /*resumed=*/true);
  EXPECT_THAT(names(), ElementsAre("best", "step-0000000020"));
  fs::rename(folder_.path("c/best"), folder_.path("c/.best.old"));
  fault::arm("checkpoint.no_exchange", 1);
  fault::arm("checkpoint.second_rename", 1);
  EXPECT_THROW(save_checkpoint_as(where(), "best", of_run("a", 30)), IoError);
  EXPECT_EQ(iteration_at(folder_.path("c/best")), 10U);
}

TEST_F(CheckpointFolderTest, WhatKilledSavesLeftIsRemovedAtTheNextStart) {
  save_checkpoint(where(), of_run("a", 20));
  folder_.write("c/.step-0000000040.unfinished/model.safetensors", "half");
  claim_folder(where(), 20, /*resumed=*/true);
  EXPECT_THAT(names(), ElementsAre("step-0000000020"));
}

TEST_F(CheckpointFolderTest, AFolderThatCannotBeBroughtToDiskIsAnErrorOfTheSave) {
  save_checkpoint(where(), of_run("a", 10));
  const auto syncs = [] { return fault::hits()["checkpoint.sync_folder"]; };
  fault::disarm_all();
  save_checkpoint(where(), of_run("a", 20));
  const std::uint64_t last = syncs();
  ASSERT_GT(last, 0U);
  fault::arm("checkpoint.sync_folder", last);
  EXPECT_THAT([&] { save_checkpoint(where(), of_run("a", 30)); },
              ThrowsMessage<IoError>(HasSubstr("Input/output error")));
  fault::disarm_all();
  save_checkpoint(folder_.path("new/deep/c"), of_run("a", 10));
  EXPECT_EQ(syncs(), last + 3);  // each folder that was made, in the one it is in
}

TEST_F(CheckpointFolderTest, NamesInTheListOfFilesStayInTheFolder) {
  const std::string path = save_checkpoint(where(), of_run("a", 10));
  folder_.write("secret", "12345678");
  for (const char* const name : {"../../secret", "/etc/hostname", "..", ""}) {
    std::ofstream(path + "/files.json")
        << fmt::format(R"({{"{}": {{"bytes": 8, "crc32c": 1}}}})", name);
    EXPECT_THAT([&] { (void)load_checkpoint(path); },
                ThrowsMessage<StateError>(
                    AllOf(HasSubstr("not a file of this folder"), Not(HasSubstr("8 bytes")))))
        << name;
  }
}

TEST_F(CheckpointFolderTest, PipesDevicesAndHugeFilesAreRefusedBeforeTheyAreRead) {
  const std::string path = save_checkpoint(where(), of_run("a", 10));
  const std::string model = path + "/model.safetensors";
  fs::remove(model);
  ASSERT_EQ(::mkfifo(model.c_str(), 0600), 0);
  EXPECT_THAT([&] { (void)load_checkpoint(path); },
              ThrowsMessage<StateError>(HasSubstr("not a regular file")));
  fs::remove(model);
  fs::create_symlink("/dev/zero", model);
  EXPECT_THAT([&] { (void)load_checkpoint(path); },
              ThrowsMessage<StateError>(HasSubstr("not a regular file")));
  fs::resize_file(path + "/files.json", std::uint64_t{1} << 40U);  // sparse
  EXPECT_THAT([&] { (void)load_checkpoint(path); },
              ThrowsMessage<StateError>(HasSubstr("more than the")));
}

TEST_F(CheckpointFolderTest, WhatIsOnDiskIsKnownAndAFailedLastSaveIsAProblemOfTheHistory) {
  Model model(small_net());
  model.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
  const auto saver = checkpoints(where());
  const auto fit = [&](std::uint64_t epochs) {
    return model.fit(
        points(64).batch(16),
        {.epochs = epochs, .callbacks = {saver}, .resume = where(), .show = Show::nothing});
  };
  EXPECT_TRUE(fit(1).problems.empty());
  EXPECT_EQ(saver->saved(), 4U);
  // Its folder becomes a file: nothing can be saved there any more.
  const Heard heard;
  std::uint64_t epoch = 0;
  const auto spoil = hooks({.on_epoch_end = [&](Training&, const EpochLog&) {
    if (++epoch != 1) return;
    fs::remove_all(where());
    folder_.write("c", "");
  }});
  const History history = model.fit(
      points(64).batch(16),
      {.epochs = 40, .callbacks = {saver, spoil}, .resume = where(), .show = Show::nothing});
  EXPECT_TRUE(history.complete);
  EXPECT_EQ(saver->saved(), 8U);
  ASSERT_EQ(history.problems.size(), 1U);
  EXPECT_THAT(history.problems[0], AllOf(HasSubstr("the last save failed"), HasSubstr("update 8")));
  EXPECT_EQ(heard.count("training continues"), 3U);  // the 1st, 4th and 16th of 38
}

}  // namespace
}  // namespace penstock::train
