// Files of records through a loader.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"
#include "record/compressed_for_tests.h"
#include "record/words_kind_for_tests.h"
#include "verb/record_dataset.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class RecordsTest : public testing::Test {
 protected:
  RecordsTest() {
    for (int file = 0; file < 5; ++file) {
      std::string text = "pre|";
      for (int i = 0; i < 20 * file; ++i) {
        const std::string word = fmt::format("{}.{}", file, i);
        words_.push_back(word);
        text += word + ";";
      }
      folder_.write(fmt::format("plain/{}", file), text);
      folder_.write(fmt::format("packed/{}.gz", file), for_tests::stored_gzip(text));
    }
  }
  [[nodiscard]] Dataset data(const std::string& pattern = "plain/*") const {
    return record_dataset(words_kind(), {{folder_.path(pattern)}});
  }
  static std::vector<std::string> words_of(Loader& loader) {
    std::vector<std::string> words;
    for (const Batch& batch : loader)
      for (std::size_t row = 0; row < batch.rows(); ++row)
        words.emplace_back(batch.row(row).tensor().text());
    return words;
  }
  static std::vector<std::string> words_of(const Dataset& batched,
                                           const LoaderOptions& options = {}) {
    Loader loader(batched, options);
    return words_of(loader);
  }

  const TempFolder folder_;
  std::vector<std::string> words_;
};

TEST_F(RecordsTest, RecordsComeOnceInTheOrderOfTheFiles) {
  EXPECT_EQ(data().cardinality(), Cardinality::of(200));
  EXPECT_EQ(words_of(data().batch(7)), words_);
  EXPECT_EQ(words_of(data().batch(7), {.threads = 0}), words_);
}

TEST_F(RecordsTest, AShuffleMixesAllFilesAndLosesNothing) {
  const Dataset shuffled = data().shuffle({.seed = 5}).batch(8);
  auto words = words_of(shuffled);
  EXPECT_NE(words, words_);
  EXPECT_EQ(words_of(shuffled, {.threads = 0}), words);
  std::ranges::sort(words);
  std::ranges::sort(words_);
  EXPECT_EQ(words, words_);
}

TEST_F(RecordsTest, CompressedFilesAreAStreamOfTheSameRecords) {
  const Dataset stream = data("packed/*");
  EXPECT_TRUE(stream.streamed());
  EXPECT_EQ(words_of(stream.batch(7)), words_);
  EXPECT_THAT(Plan(stream.batch(7)).explain(), HasSubstr("compressed files are read in order"));
}

TEST_F(RecordsTest, ResumingAtEveryStepGivesTheRest) {
  for (const Dataset& batched :
       {data().shuffle({.seed = 5}).batch(8), data("packed/*").shuffle({.window = 30}).batch(8)}) {
    const auto whole = words_of(batched);
    Loader loader(batched);
    for (std::size_t taken = 0; loader.next(); taken += 8) {
      Loader resumed(batched);
      resumed.restore(loader.state());
      const auto first = static_cast<std::ptrdiff_t>(std::min(taken + 8, whole.size()));
      if (taken + 8 >= whole.size()) break;  // the state is that of the next epoch
      EXPECT_EQ(words_of(resumed), std::vector<std::string>(whole.begin() + first, whole.end()));
    }
  }
}

TEST_F(RecordsTest, ABadRecordIsRaisedOrSkippedAndNamed) {
  folder_.write("plain/2", "pre|good;bad;better;w!orse;never");
  folder_.write("packed/2.gz", for_tests::stored_gzip("pre|good;bad;better;w!orse;never"));
  for (const char* pattern : {"plain/*", "packed/*"}) {
    Loader loader(data(pattern).batch(6), {.on_error = OnError::skip});
    const auto words = words_of(loader);
    EXPECT_THAT(words, SizeIs(20 + 2 + 60 + 80)) << pattern;
    const auto& entries = loader.ledger().entries();
    ASSERT_THAT(entries, SizeIs(2));
    EXPECT_THAT(entries[0].reason, HasSubstr("record 1 (byte 9): a bad word"));
    EXPECT_THAT(entries[0].file, HasSubstr(pattern[1] == 'l' ? "plain/2" : "packed/2.gz"));
    EXPECT_THAT(entries[1].reason, HasSubstr("record 3 (byte 20): an exclamation mark"));
    Loader raising(data(pattern).batch(6));
    EXPECT_THAT([&] { words_of(raising); }, testing::ThrowsMessage<SampleError>(AllOf(
                                                HasSubstr("a bad word"), HasSubstr("record 1"))));
  }
}

TEST_F(RecordsTest, AFileThatChangesWhileRunningFailsItsRecordsOnly) {
  const Dataset batched = data().shuffle().batch(10);
  std::ofstream(folder_.path("plain/3"), std::ios::binary) << "pre|";
  Loader loader(batched, {.on_error = OnError::skip, .skip_limit = 100});
  EXPECT_THAT(words_of(loader), SizeIs(20 + 40 + 80));
  EXPECT_THAT(loader.ledger().entries().front().reason, HasSubstr("was changed"));
}

TEST_F(RecordsTest, AFileWithAnotherPrefaceIsRefused) {
  folder_.write("plain/4", "other|4.0;");
  EXPECT_THAT([&] { (void)data(); },
              testing::ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("\"other|\", not \"pre|\""), HasSubstr("plain/4"))));
}

TEST_F(RecordsTest, ARecordAboveTheLimitFails) {
  RecordArguments arguments{{folder_.path("plain/*")}};
  arguments.options.record_bytes_max = 4;
  Loader loader(record_dataset(words_kind(), arguments).batch(9),
                {.on_error = OnError::skip, .skip_limit = 200});
  EXPECT_THAT(words_of(loader), SizeIs(40));
  EXPECT_THAT(loader.ledger().entries().front().reason, HasSubstr("limit of 4"));
}

TEST_F(RecordsTest, TheOrderDigestIsThatOfACopyElsewhere) {
  std::filesystem::copy(folder_.path("plain"), folder_.path("copy"));
  EXPECT_EQ(data().digests(), data("copy/*").digests());
  folder_.write("copy/4", "pre|1;2");
  EXPECT_NE(data().digests(), data("copy/*").digests());
}

TEST_F(RecordsTest, RecordsOfSlowStorageAreReadAheadOnceEach) {
  class SlowIo final : public Io {
   public:
    explicit SlowIo(VirtualClock& clock) : clock_(clock) {}
    Result<Bytes> read(const std::string& path, std::uint64_t offset,
                       std::uint64_t length) override {
      ++reads;
      clock_.advance(std::chrono::milliseconds(5));
      return real().read(path, offset, length);
    }
    Result<Bytes> read_whole(const std::string& path, const WholeFile& wanted) override {
      return real().read_whole(path, wanted);
    }
    Result<std::string> read_text(const std::string& path, std::uint64_t bytes_max) override {
      return real().read_text(path, bytes_max);
    }
    Result<std::vector<FolderEntry>> list(const std::string& path) override {
      return real().list(path);
    }
    Result<FolderEntry> look(const std::string& path) override { return real().look(path); }
    Result<std::string> real_path(const std::string& path) override {
      return real().real_path(path);
    }
    Result<void> append(const std::string& path, const std::string& text) override {
      return real().append(path, text);
    }
    Result<void> publish(const std::string& path, std::string_view content) override {
      return real().publish(path, content);
    }
    std::atomic<int> reads = 0;

   private:
    VirtualClock& clock_;
  };
  VirtualClock clock;
  SlowIo io(clock);
  const Dataset shuffled = data().shuffle({.seed = 5}).batch(4);
  const auto expected = words_of(shuffled);
  EXPECT_EQ(words_of(shuffled, {.clock = &clock, .io = &io}), expected);
  EXPECT_LE(io.reads, 200);
}

}  // namespace
}  // namespace penstock
