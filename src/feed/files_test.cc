// Datasets of files through a loader: bytes, errors that name the file, the ledger, serialized
// plans.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    for (int i = 0; i < 20; ++i)
      folder_.write(fmt::format("{}/{:02}.png", i % 2 == 0 ? "cat" : "dog", i),
                    fmt::format("photo {}", i));
  }
  [[nodiscard]] Dataset data() const { return Dataset::image_folder(folder_.path()); }
  TempFolder folder_;
};

/// "label:content" of every row of an epoch, in order.
std::vector<std::string> rows_of(const Dataset& batched, const LoaderOptions& options) {
  std::vector<std::string> rows;
  Loader loader(batched, options);
  for (const Batch& batch : loader)
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      const Sample sample = batch.row(row);
      rows.push_back(fmt::format("{}:{}", sample["label"].item<std::int64_t>(),
                                 std::string(sample["image"].text())));
    }
  return rows;
}

TEST_F(FilesTest, EveryFileIsDeliveredOnceWithItsLabel) {
  const Dataset batched = data().shuffle({.seed = 3}).batch(6);
  auto inline_rows = rows_of(batched, {.threads = 0});
  EXPECT_EQ(rows_of(batched, {}), inline_rows);
  std::ranges::sort(inline_rows);
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) expected.push_back(fmt::format("{}:photo {}", i % 2, i));
  std::ranges::sort(expected);
  EXPECT_EQ(inline_rows, expected);
}

/// The file at which an epoch fails.
std::string failing_file(const Dataset& batched) {
  Loader loader(batched);
  try {
    while (loader.next()) {
    }
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr(error.where().file));
    return error.where().file;
  }
  return "none";
}

TEST_F(FilesTest, AFailureOfAnyOpNamesTheFile) {
  const auto fails_at_seven = [](const Sample& sample) -> Sample {
    if (sample["image"].text() == "photo 7") throw std::runtime_error("seven");
    return sample;
  };
  const std::string seven = folder_.path("dog/07.png");
  EXPECT_EQ(failing_file(data().shuffle().map(fails_at_seven).batch(4)), seven);
  EXPECT_EQ(failing_file(data().repeat(2).skip(3).map(fails_at_seven).batch(4)), seven);
  EXPECT_EQ(
      failing_file(data().filter([](const Sample&) { return true; }).map(fails_at_seven).batch(4)),
      seven);
  const Dataset listed = Dataset::list_files(folder_.path("**/*.png")).batch(3);
  EXPECT_EQ(failing_file(listed), "none");
  std::filesystem::remove(seven);
  EXPECT_EQ(failing_file(listed.map(read_file())), seven);
}

TEST_F(FilesTest, DamagedFilesAreSkippedAndListedInTheLedger) {
  const Dataset batched = data().batch(5);
  std::filesystem::remove(folder_.path("cat/04.png"));
  folder_.write("dog/07.png", "another size");
  folder_.write("cat/10.png", "");
  std::filesystem::remove(folder_.path("dog/13.png"));
  folder_.make_folder("dog/13.png");
  const std::string file = folder_.path("ledger.jsonl");
  Loader loader(batched, {.on_error = OnError::skip, .ledger_file = file});
  std::size_t rows = 0;
  while (const auto batch = loader.next()) rows += batch->valid_count();
  EXPECT_EQ(rows, 16U);
  std::vector<std::string> files;
  for (const LedgerEntry& entry : loader.ledger().entries())
    files.push_back(entry.file.substr(folder_.path().size() + 1));
  EXPECT_THAT(files, ElementsAre("cat/04.png", "cat/10.png", "dog/07.png", "dog/13.png"));
  EXPECT_THAT(loader.ledger().text(), HasSubstr("file " + folder_.path("cat/04.png")));
  std::ostringstream lines;
  lines << std::ifstream(file).rdbuf();
  EXPECT_THAT(lines.str(), AllOf(HasSubstr("\"file\":\"" + folder_.path("dog/07.png") + "\""),
                                 HasSubstr("is a folder")));
}

TEST_F(FilesTest, AFileNameThatIsNotUtf8IsReadAndPrintedEscaped) {
  folder_.write("cat/\xff\n.png", "odd");
  const Dataset batched = data().batch(4);
  EXPECT_EQ(rows_of(batched, {}).size(), 21U);
  std::filesystem::remove(folder_.path("cat/\xff\n.png"));
  Loader loader(batched);
  try {
    while (loader.next()) {
    }
    FAIL() << "the file does not exist";
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cat/\\xff\\x0a.png"));
    EXPECT_EQ(error.where().file, folder_.path("cat/\xff\n.png"));
  }
}

TEST_F(FilesTest, ASavedIndexGivesTheSameDataAndStatesLoad) {
  const std::string index = folder_.path("index");
  list_images(folder_.path()).save(index);
  const Dataset listed = data().shuffle({.seed = 1}).batch(4);
  const Dataset loaded =
      Dataset::image_folder(folder_.path(), {.index = index}).shuffle({.seed = 1}).batch(4);
  EXPECT_EQ(listed.digests(), loaded.digests());
  Loader first(listed);
  (void)first.next();
  Loader second(loaded);
  second.restore(first.state());
  EXPECT_EQ(second.next()->sample_id()[0], first.next()->sample_id()[0]);
  folder_.write("cat/new.png", "x");
  EXPECT_THROW(Loader(data().shuffle({.seed = 1}).batch(4)).restore(first.state()), StateError);
}

TEST_F(FilesTest, PlansOfFilesCanBeSerialized) {
  const std::vector<std::string> paths{folder_.path("cat/00.png"), folder_.path("dog/01.png")};
  for (const Dataset& dataset :
       {Dataset::image_folder(folder_.path(), {.with_path = true}).shuffle().batch(4),
        Dataset::image_folder(folder_.path(), {.extensions = {"png"}, .labels = false}).batch(3),
        Dataset::from_paths(paths, {3, 4}).batch(2), Dataset::from_paths(paths).batch(2),
        Dataset::list_files(folder_.path("**/*.png")).map(read_file()).batch(5)}) {
    const Plan plan(dataset);
    const Plan again = Plan::parse(plan.serialize());
    EXPECT_EQ(again.digests(), plan.digests());
    EXPECT_EQ(again.dataset().describe(), dataset.describe());
  }
}

TEST_F(FilesTest, APlanOfAChangedFolderIsRejected) {
  const std::string text = Plan(data().batch(4)).serialize();
  folder_.write("cat/00.png", "larger than before");
  EXPECT_THROW(Plan::parse(text), ConfigError);
}

}  // namespace
}  // namespace penstock
