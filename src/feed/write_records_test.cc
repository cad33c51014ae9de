#include "penstock/write_records.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"
#include "record/arrow_file_for_tests.h"

namespace penstock {
namespace {

using ::penstock::testing::ArrowFileView;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

constexpr const char* kFormats[] = {"tfrecord", "tar", "arrow"};

class WriteRecordsTest : public ::testing::Test {
 protected:
  static Dataset numbers(std::int64_t count) {
    return Dataset::range(count).map(
        [](const Sample& sample) {
          const auto number = sample.tensor().item<std::int64_t>();
          return Sample::dict({{"label", Tensor::scalar(number)},
                               {"x", Tensor::of<float>({0.5F, static_cast<float>(number)})},
                               {"text", Tensor::bytes(fmt::format("t{}", number), Dtype::string)}});
        },
        {.name = "numbers"});
  }
  /// The files of Arrow, in order: columns label, text and x.
  [[nodiscard]] std::vector<std::int64_t> labels_of_arrow() const {
    std::vector<std::int64_t> found;
    for (const auto& [name, bytes] : files()) {
      if (!name.ends_with(".arrow")) continue;
      const ArrowFileView file(bytes);
      EXPECT_EQ(file.schema(), "label: 2 i64, text: 20, x: 16 2 <item: 3 1>");
      for (const auto& batch : file.batches()) {
        const auto labels = batch.numbers<std::int64_t>(1);
        const auto ends = batch.numbers<std::int64_t>(3);
        for (std::size_t row = 0; row < labels.size(); ++row) {
          const auto first = static_cast<std::size_t>(ends[row]);
          EXPECT_EQ(batch.buffers[4].substr(first, static_cast<std::size_t>(ends[row + 1]) - first),
                    fmt::format("t{}", labels[row]));
          EXPECT_EQ(batch.numbers<float>(7)[row * 2 + 1], static_cast<float>(labels[row]));
        }
        found.insert(found.end(), labels.begin(), labels.end());
      }
    }
    return found;
  }
  [[nodiscard]] std::vector<std::int64_t> labels(const std::string& format) const {
    if (format == "arrow") return labels_of_arrow();
    const std::string pattern = folder_.path("out/*." + format);
    TarOptions members;
    members.fields = {{"label", "cls"}, {"text", "txt"}, {"x", "x.npy"}};
    TfrecordOptions features;
    features.features = {{"label", Dtype::i64}, {"text", Dtype::string}, {"x", Dtype::f32, {2}}};
    std::vector<std::int64_t> found;
    const bool tar = format == "tar";
    Loader loader(
        (tar ? from_tar({pattern}, members) : from_tfrecord({pattern}, features)).batch(32));
    for (const Batch& batch : loader)
      for (std::size_t row = 0; row < batch.rows(); ++row) {
        const Sample sample = batch.row(row);
        found.push_back(sample["label"].item<std::int64_t>());
        EXPECT_EQ(sample["text"].text(), fmt::format("t{}", found.back()));
      }
    return found;
  }
  static std::vector<std::int64_t> up_to(std::int64_t count) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
    return all;
  }
  [[nodiscard]] std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("out")))
      all[entry.path().filename()] = content(entry.path());
    return all;
  }

  const TempFolder folder_;
};

TEST_F(WriteRecordsTest, EverySampleIsInOneFileInOrder) {
  for (const char* format : kFormats) {
    const WrittenRecords written =
        write_records(numbers(100), folder_.path("out"), {.format = format, .shards = 7});
    EXPECT_THAT(written.files, SizeIs(7));
    EXPECT_EQ(written.samples, 100U);
    EXPECT_EQ(labels(format), up_to(100));
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(WriteRecordsTest, FilesHaveAboutTheSizeThatIsAskedFor) {
  for (const char* format : {"tfrecord", "arrow"}) {
    const WrittenRecords written = write_records(numbers(2000), folder_.path("out"),
                                                 {.format = format, .shard_bytes = 20'000});
    ASSERT_GT(written.files.size(), 2U);
    for (const std::string& file : written.files)
      EXPECT_NEAR(static_cast<double>(std::filesystem::file_size(file)), 20'000, 6'000);
    EXPECT_EQ(labels(format), up_to(2000));
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(WriteRecordsTest, TheBytesDoNotDependOnThreads) {
  const Dataset shuffled = numbers(300).shuffle({.seed = 4});
  for (const char* format : kFormats) {
    write_records(shuffled, folder_.path("out"), {.format = format, .shards = 3});
    const auto first = files();
    std::filesystem::remove_all(folder_.path("out"));
    write_records(shuffled, folder_.path("out"),
                  {.format = format, .shards = 3, .loader = {.threads = 0}});
    EXPECT_EQ(files(), first);
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(WriteRecordsTest, AnInterruptedCallIsContinuedAtEveryPoint) {
  for (const char* format : kFormats) {
    const WriteRecordsOptions options{.format = format, .shards = 5};
    std::filesystem::remove_all(folder_.path("out"));
    write_records(numbers(640), folder_.path("out"), options);
    const auto whole = files();
    for (std::uint64_t stop = 64; stop <= 640; stop += 64) {
      std::filesystem::remove_all(folder_.path("out"));
      WriteRecordsOptions stopped = options;
      stopped.progress = [stop](std::uint64_t done, auto) {
        if (done >= stop) throw std::runtime_error("stopped");
      };
      EXPECT_THROW(write_records(numbers(640), folder_.path("out"), stopped), std::runtime_error);
      const WrittenRecords written = write_records(numbers(640), folder_.path("out"), options);
      EXPECT_EQ(written.found, (stop - 1) / 128);
      EXPECT_EQ(files(), whole) << stop;
    }
  }
}

TEST_F(WriteRecordsTest, AStreamIsWrittenToFilesThatEndBySize) {
  const Dataset stream = numbers(1000).filter([](const Sample&) { return true; });
  for (const char* format : kFormats) {
    const WrittenRecords written =
        write_records(stream, folder_.path("out"), {.format = format, .shard_bytes = 10'000});
    EXPECT_GT(written.files.size(), 2U);
    EXPECT_EQ(labels(format), up_to(1000));
    std::filesystem::remove_all(folder_.path("out"));
  }
}

TEST_F(WriteRecordsTest, AStreamThatSkipsSamplesIsContinuedAtEveryPoint) {
  const Dataset stream = numbers(640)
                             .filter([](const Sample&) { return true; })
                             .map([](const Sample& sample) -> Sample {
                               if (sample["label"].item<std::int64_t>() % 100 == 7)
                                 throw std::runtime_error("bad");
                               return sample;
                             });
  const auto options = [](const char* format, std::uint64_t stop) {
    WriteRecordsOptions chosen{.format = format, .shard_bytes = 9'000};
    chosen.loader.on_error = OnError::skip;
    chosen.loader.skip_limit = 100;
    chosen.progress = [stop](std::uint64_t done, auto) {
      if (done >= stop) throw std::runtime_error("stopped");
    };
    return chosen;
  };
  for (const char* format : {"tfrecord", "arrow"}) {
    std::filesystem::remove_all(folder_.path("out"));
    write_records(stream, folder_.path("out"), options(format, UINT64_MAX));
    auto whole = files();
    whole.erase("shards.json");
    EXPECT_THAT(labels(format), SizeIs(633));
    for (std::uint64_t stop = 60; stop < 600; stop += 64) {
      std::filesystem::remove_all(folder_.path("out"));
      EXPECT_THROW(write_records(stream, folder_.path("out"), options(format, stop)),
                   std::runtime_error);
      write_records(stream, folder_.path("out"), options(format, UINT64_MAX));
      auto again = files();
      again.erase("shards.json");
      EXPECT_EQ(again, whole) << stop;
    }
  }
}

TEST_F(WriteRecordsTest, FilesOfAnotherProgramAreNotReplaced) {
  folder_.write("out/data-00000.tfrecord", "precious");
  EXPECT_THAT([&] { write_records(numbers(3), folder_.path("out")); },
              ThrowsMessage<ConfigError>(HasSubstr("something else")));
  EXPECT_EQ(content(folder_.path("out/data-00000.tfrecord")), "precious");
}

TEST_F(WriteRecordsTest, FieldsThatWouldBeOneMemberAreRefused) {
  const Dataset twice = Dataset::range(3).map([](const Sample& sample) {
    return Sample::dict({{"label", sample.tensor()}, {"cls", sample.tensor()}});
  });
  EXPECT_THAT([&] { write_records(twice, folder_.path("out"), {.format = "tar", .shards = 1}); },
              ThrowsMessage<ConfigError>(HasSubstr("two fields")));
}

TEST_F(WriteRecordsTest, SamplesThatFailAreSkippedAndCounted) {
  const Dataset some = numbers(100).map([](const Sample& sample) -> Sample {
    if (sample["label"].item<std::int64_t>() % 40 == 7) throw std::runtime_error("bad");
    return sample;
  });
  EXPECT_THROW(write_records(some, folder_.path("out"), {.shards = 2}), SampleError);
  const WrittenRecords written = write_records(
      some, folder_.path("out"), {.shards = 2, .loader = {.on_error = OnError::skip}});
  EXPECT_EQ(written.samples, 97U);
  EXPECT_EQ(written.skipped, 3U);
  EXPECT_THAT(labels("tfrecord"), SizeIs(97));
}

TEST_F(WriteRecordsTest, AFolderOfSomethingElseIsRefused) {
  write_records(numbers(10), folder_.path("out"), {.shards = 1});
  const auto refused = [](const char* text) { return ThrowsMessage<ConfigError>(HasSubstr(text)); };
  EXPECT_THAT([&] { write_records(numbers(11), folder_.path("out"), {.shards = 1}); },
              refused("other data"));
  folder_.write("other/shards.json", "[]");
  EXPECT_THAT([&] { write_records(numbers(11), folder_.path("other"), {.shards = 1}); },
              refused("not a list of shards"));
  EXPECT_THAT([&] { write_records(numbers(3), folder_.path("new"), {.format = "zip"}); },
              refused("zip"));
  EXPECT_THAT([&] { write_records(numbers(3).batch(2), folder_.path("new")); }, refused("batches"));
  EXPECT_THAT([&] { write_records(numbers(3).repeat(), folder_.path("new")); }, refused("endless"));
}

TEST_F(WriteRecordsTest, ADatasetWithoutSamplesIsOneFileWithoutRecords) {
  for (const char* format : kFormats) {
    const WrittenRecords written =
        write_records(numbers(0), folder_.path(format), {.format = format, .shards = 4});
    EXPECT_EQ(written.samples, 0U);
    EXPECT_THAT(written.files, ElementsAre(HasSubstr(fmt::format("data-00000.{}", format))));
  }
}

TEST_F(WriteRecordsTest, AllArrowFilesHaveTheColumnsOfTheWholeDataset) {
  // The first file alone would have lists of one size.
  const Dataset growing = Dataset::range(1000).map([](const Sample& sample) {
    const auto size = static_cast<std::size_t>(sample.tensor().item<std::int64_t>() / 500);
    return Sample::dict({{"x", Tensor::of(std::vector<float>(size))}});
  });
  write_records(growing, folder_.path("out"), {.format = "arrow", .shards = 2});
  for (const auto& [name, bytes] : files())
    if (name.ends_with(".arrow")) {
      EXPECT_EQ(ArrowFileView(bytes).schema(), "x: 21 <item: 3 1>");
    }
}

TEST_F(WriteRecordsTest, ASampleThatDoesNotFitTheColumnsIsNotLostSilently) {
  const Dataset late = Dataset::range(1000).map([](const Sample& sample) {
    return Sample(
        Tensor::of(std::vector<float>(sample.tensor().item<std::int64_t>() == 7 ? 3 : 2)));
  });
  EXPECT_THAT([&] { write_records(late, folder_.path("out"), {.format = "arrow", .shards = 1}); },
              ThrowsMessage<SampleError>(HasSubstr("sample 7 does not fit the columns")));
}

TEST_F(WriteRecordsTest, ArraysInTarFilesAreThoseOfNumPy) {
  write_records(numbers(3), folder_.path("out"), {.format = "tar", .shards = 1});
  const Dataset read = from_tar({folder_.path("out/*.tar")}, {.fields = {{"x", "x.npy"}}});
  const std::string npy(read.sample(2)["x"].text());
  const Dataset array = from_npy({folder_.write("x.npy", npy)});
  EXPECT_EQ(array.sample(1).tensor().item<float>(), 2.0F);
}

}  // namespace
}  // namespace penstock
