#include "store/disk_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/fault.h"
#include "base/temp_folder_for_tests.h"
#include "base/thread.h"
#include "penstock/error.h"
#include "penstock/report_sink.h"
#include "sample/rows.h"
#include "store/memory_rows.h"
#include "store/spilled_rows.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using Numbers = std::vector<std::uint64_t>;
namespace fs = std::filesystem;

Numbers count_from(std::uint64_t first, std::size_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

ElementSpec dense_spec() {
  return ElementSpec::dict({{"a", Dtype::u8, {3}}, {"b", Dtype::u64, {}}});
}
ElementSpec varying_spec() {
  return ElementSpec::dict({{"a", Dtype::bytes, {}}, {"b", Dtype::u64, {kUnknown}}});
}

/// Row `number` of any of these specs.
Sample sample_of(const ElementSpec& spec, std::uint64_t number) {
  if (spec == dense_spec()) {
    const auto byte = static_cast<std::uint8_t>(number);
    return Sample::dict(
        {{"a", Tensor::of(std::vector<std::uint8_t>(3, byte))}, {"b", Tensor::scalar(number)}});
  }
  return Sample::dict({{"a", Tensor::bytes(std::to_string(number))},
                       {"b", Tensor::of(Numbers(number % 4, number))}});
}

DiskRowsSettings settings_of(const TempFolder& folder, const ElementSpec& spec) {
  DiskRowsSettings settings{.title = "cache(\"x\")", .folder = folder.path(), .header = {}};
  settings.header.data = {{"order", "values"}, spec};
  return settings;
}

void put(RowStore& store, const ElementSpec& spec, const Numbers& numbers) {
  Scratch scratch;
  const ScratchBlock block(spec, numbers.size(), scratch);
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    EXPECT_FALSE(write_row(block.view(), row, sample_of(spec, numbers[row])));
    block.view().identity.sample_id[row] = numbers[row] + 1000;
    block.view().identity.occurrence[row] = numbers[row] % 7;
  }
  store.put(numbers, block.view());
}

/// The numbers of those rows that the store has; checks every byte of them.
Numbers rows_in(RowStore& store, const ElementSpec& spec, const Numbers& numbers) {
  Scratch scratch;
  const ScratchBlock out(spec, numbers.size(), scratch);
  const auto missing = store.get(numbers, out.view());
  Numbers found;
  for (std::uint32_t row = 0; row < numbers.size(); ++row) {
    if (std::ranges::binary_search(missing, row)) continue;
    found.push_back(numbers[row]);
    const Sample got = read_row(out.view(), row);
    const Sample wanted = sample_of(spec, numbers[row]);
    EXPECT_EQ(got.structure(), wanted.structure());
    for (std::size_t i = 0; i < wanted.leaves().size(); ++i) {
      EXPECT_EQ(got.leaves()[i].text(), wanted.leaves()[i].text());
      EXPECT_EQ(got.leaves()[i].shape(), wanted.leaves()[i].shape());
    }
    EXPECT_EQ(out.view().identity.sample_id[row], numbers[row] + 1000);
    EXPECT_EQ(out.view().identity.occurrence[row], numbers[row] % 7);
  }
  return found;
}

std::vector<fs::path> files_in(const TempFolder& folder, const std::string& end) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().string().ends_with(end)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}
void set_byte(const fs::path& path, std::size_t offset, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

const std::vector<ElementSpec>& all_specs() {
  static const auto& specs = *new std::vector{dense_spec(), varying_spec(), ElementSpec::unknown()};
  return specs;
}

TEST(DiskRowsTest, RowsAreFoundAgainInAnyOrderAlsoByLaterStores) {
  for (const ElementSpec& spec : all_specs()) {
    const TempFolder folder;
    const auto settings = settings_of(folder, spec);
    const Numbers some{9, 2, 3, 4, 700, std::uint64_t{1} << 60};
    {
      DiskRows rows(settings);
      put(rows, spec, some);
      EXPECT_EQ(rows_in(rows, spec, {3, 1, 4, 2, 700, 9, 8}), (Numbers{3, 4, 2, 700, 9}));
    }
    DiskRows later(settings);
    EXPECT_EQ(later.rows(), some.size());
    EXPECT_EQ(rows_in(later, spec, some), some);
    put(later, spec, {5, 2});
    EXPECT_EQ(rows_in(later, spec, {2, 3, 4, 5, 6}), (Numbers{2, 3, 4, 5}));
    EXPECT_THAT(files_in(folder, ".psr"), SizeIs(2));
  }
}

TEST(DiskRowsTest, TwoWritersOfOneFolderSeeEachOthersRowsAfterARefresh) {
  for (const ElementSpec& spec : all_specs()) {
    const TempFolder folder;
    DiskRows one(settings_of(folder, spec));
    DiskRows other(settings_of(folder, spec));
    put(one, spec, {1, 2});
    EXPECT_FALSE(other.has(1));
    other.refresh();
    EXPECT_EQ(rows_in(other, spec, {1, 2, 3}), (Numbers{1, 2}));
    put(other, spec, {3});
    put(one, spec, {4});
    one.refresh();
    other.refresh();
    for (DiskRows* rows : {&one, &other})
      EXPECT_EQ(rows_in(*rows, spec, {1, 2, 3, 4}), (Numbers{1, 2, 3, 4}));
    // Rows that are missing often enough make a store look by itself.
    put(one, spec, {5000});
    for (std::uint64_t i = 0; i < 3; ++i) (void)rows_in(other, spec, count_from(6000, 100));
    EXPECT_TRUE(other.has(5000));
  }
}

TEST(DiskRowsTest, ThreadsReadAndWriteAndRefreshAtTheSameTime) {
  for (const ElementSpec& spec : all_specs()) {
    const TempFolder folder;
    auto settings = settings_of(folder, spec);
    settings.files = 2;
    DiskRows one(settings);
    DiskRows other(settings);
    {
      std::vector<Thread> threads;
      threads.reserve(4);
      for (std::uint64_t i = 0; i < 4; ++i)
        threads.emplace_back("user", [&, i] {
          DiskRows& rows = i % 2 == 0 ? one : other;
          for (std::uint64_t first = 0; first < 2000; first += 50) {
            put(rows, spec, count_from(first + i * 25, 50));
            rows.refresh();
            (void)rows_in(rows, spec, count_from(first, 100));
          }
        });
    }
    one.refresh();
    EXPECT_EQ(rows_in(one, spec, count_from(0, 2000)), count_from(0, 2000));
  }
}

TEST(DiskRowsTest, RowsOfOtherDataAreNotFound) {
  const TempFolder folder;
  auto settings = settings_of(folder, dense_spec());
  {
    DiskRows rows(settings);
    put(rows, dense_spec(), {1});
  }
  settings.header.data.digests.values = "changed";
  EXPECT_EQ(DiskRows(settings).rows(), 0U);
}

TEST(DiskRowsTest, AFolderOfOtherDataIsRefusedWithBothDigests) {
  const TempFolder folder;
  RowsHeader header = settings_of(folder, dense_spec()).header;
  (void)open_header(Io::real(), folder.path(), header, "cache(\"x\")");
  header.data.digests.order = "another";
  try {
    (void)open_header(Io::real(), folder.path(), header, "cache(\"x\")");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("order order"));
    EXPECT_THAT(error.what(), HasSubstr("order another"));
    EXPECT_THAT(error.what(), HasSubstr("delete"));
  }
  folder.write("dataset.json", "{\"penstock\": \"rows\", \"format\": 9}");
  EXPECT_THROW((void)open_header(Io::real(), folder.path(), header, "x"), ConfigError);
  folder.write("dataset.json", "{\"mine\": 1}");
  EXPECT_THROW((void)open_header(Io::real(), folder.path(), header, "x"), ConfigError);
}

TEST(DiskRowsTest, AfterAnyCutOfTheLastFramesTheCompleteRowsAreThere) {
  for (const ElementSpec& spec : all_specs()) {
    const TempFolder folder;
    const auto settings = settings_of(folder, spec);
    {
      DiskRows rows(settings);
      put(rows, spec, count_from(0, 6));
    }
    const fs::path file = files_in(folder, ".psr").front();
    const std::string whole = read_file(file);
    for (std::size_t size = whole.size(); size-- > kRowFileStartBytes;) {
      fs::resize_file(file, size);
      DiskRows rows(settings);
      const Numbers found = rows_in(rows, spec, count_from(0, 6));
      EXPECT_EQ(found, count_from(0, found.size())) << size;
      EXPECT_EQ(found.size(), rows.rows());
    }
  }
}

TEST(DiskRowsTest, AfterAnyChangedByteRowsAreEqualOrMissing) {
  for (const ElementSpec& spec : all_specs()) {
    const TempFolder folder;
    const auto settings = settings_of(folder, spec);
    {
      DiskRows rows(settings);
      put(rows, spec, count_from(0, 5));
    }
    const fs::path file = files_in(folder, ".psr").front();
    const std::string whole = read_file(file);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      set_byte(file, i, static_cast<char>(whole[i] ^ (1 << (i % 8))));
      DiskRows rows(settings);
      const Numbers found = rows_in(rows, spec, count_from(0, 5));
      if (i >= kRowFileStartBytes) {
        EXPECT_GE(found.size(), 4U) << i;
      }
      set_byte(file, i, whole[i]);
    }
  }
}

TEST(DiskRowsTest, ADamagedRowIsStoredAgainAndFoundByLaterStores) {
  const TempFolder folder;
  const auto settings = settings_of(folder, dense_spec());
  {
    DiskRows rows(settings);
    put(rows, dense_spec(), count_from(0, 5));
  }
  const fs::path file = files_in(folder, ".psr").front();
  std::string text = read_file(file);
  text[text.size() - 8] ^= 1;  // in the payload of row 4
  write_file(file, text);
  {
    DiskRows rows(settings);
    EXPECT_TRUE(rows.has(4)) << "until it is read";
    EXPECT_EQ(rows_in(rows, dense_spec(), count_from(0, 5)), count_from(0, 4));
    EXPECT_FALSE(rows.has(4));
    put(rows, dense_spec(), {4});
  }
  DiskRows later(settings);
  EXPECT_EQ(rows_in(later, dense_spec(), count_from(0, 5)), count_from(0, 5));
}

TEST(DiskRowsTest, AFileThatIsCutWhileItIsReadLosesOnlyItsRows) {
  const TempFolder folder;
  const auto settings = settings_of(folder, varying_spec());
  DiskRows rows(settings);
  put(rows, varying_spec(), count_from(0, 50));
  const fs::path file = files_in(folder, ".psr").front();
  fs::resize_file(file, fs::file_size(file) / 2);
  const Numbers found = rows_in(rows, varying_spec(), count_from(0, 50));
  EXPECT_GT(found.size(), 20U);
  EXPECT_LT(found.size(), 30U);
}

TEST(DiskRowsTest, AnIndexIsWrittenAndUsedAndNotNeeded) {
  const TempFolder folder;
  const auto settings = settings_of(folder, dense_spec());
  const Numbers all = count_from(0, 3000);
  {
    DiskRows rows(settings);
    put(rows, dense_spec(), all);
  }
  const auto indexes = files_in(folder, ".index");
  ASSERT_THAT(indexes, SizeIs(1));
  const std::string index = read_file(indexes.front());
  EXPECT_EQ(rows_in(*DiskRows::shared(settings), dense_spec(), all), all);
  // A damaged one is not used; one that is gone is written again.
  std::string changed = index;
  changed[index.size() / 2] ^= 1;
  write_file(indexes.front(), changed);
  EXPECT_EQ(DiskRows(settings).rows(), 3000U);
  fs::remove(indexes.front());
  EXPECT_EQ(DiskRows(settings).rows(), 3000U);
  EXPECT_EQ(read_file(indexes.front()), index);
}

TEST(DiskRowsTest, TheLimitIsRespectedReportedOnceAndCountsEarlierFiles) {
  const TempFolder folder;
  std::vector<std::string> told;
  const ReportSink before = set_report_sink([&](const std::string& text) { told.push_back(text); });
  auto settings = settings_of(folder, dense_spec());
  settings.bytes_max = 1000;
  {
    DiskRows rows(settings);
    for (std::uint64_t i = 0; i < 100; i += 10) put(rows, dense_spec(), count_from(i, 10));
    EXPECT_TRUE(rows.full());
    EXPECT_GT(rows.rows(), 12U);
  }
  EXPECT_THAT(told, ElementsAre(HasSubstr("limit of 1000 bytes")));
  DiskRows later(settings);
  const std::uint64_t rows_before = later.rows();
  put(later, dense_spec(), count_from(200, 20));
  EXPECT_LE(later.rows(), rows_before + 1);
  std::uint64_t bytes = 0;
  for (const fs::path& file : files_in(folder, ".psr")) bytes += fs::file_size(file);
  EXPECT_LE(bytes, 1000U + kRowFileStartBytes);
  set_report_sink(before);
}

TEST(DiskRowsTest, AFullDiskStopsWritingOnceAndKeepsTheRowsBefore) {
  const TempFolder folder;
  std::vector<std::string> told;
  const ReportSink before = set_report_sink([&](const std::string& text) { told.push_back(text); });
  const auto settings = settings_of(folder, varying_spec());
  DiskRows rows(settings);
  put(rows, varying_spec(), count_from(0, 10));
  fault::arm("append.full", 1);
  put(rows, varying_spec(), count_from(10, 10));
  put(rows, varying_spec(), count_from(20, 10));
  fault::disarm_all();
  EXPECT_EQ(rows_in(rows, varying_spec(), count_from(0, 30)), count_from(0, 10));
  EXPECT_THAT(told, ElementsAre(HasSubstr("No space left")));
  EXPECT_EQ(DiskRows(settings).rows(), 10U);
  set_report_sink(before);
}

TEST(DiskRowsTest, AFolderThatVanishesIsReportedAndNothingFails) {
  std::vector<std::string> told;
  const ReportSink before = set_report_sink([&](const std::string& text) { told.push_back(text); });
  {
    const TempFolder folder;
    DiskRows rows(settings_of(folder, dense_spec()));
    fs::remove_all(folder.path());
    put(rows, dense_spec(), {1});
    EXPECT_EQ(rows_in(rows, dense_spec(), {1}), Numbers{});
    rows.refresh();
  }
  EXPECT_THAT(told, SizeIs(1));
  set_report_sink(before);
}

TEST(DiskRowsTest, ACompleteFolderSaysSo) {
  const TempFolder folder;
  auto settings = settings_of(folder, dense_spec());
  settings.header.rows = 4;
  settings.header = open_header(Io::real(), folder.path(), settings.header, "x");
  DiskRows rows(settings);
  put(rows, dense_spec(), {0, 1, 2, 9});
  EXPECT_EQ(rows.text(), "3 of 4 rows on disk") << "there is no row 9";
  EXPECT_FALSE(find_header(Io::real(), folder.path(), "x", false)->complete);
  put(rows, dense_spec(), {3});
  EXPECT_TRUE(find_header(Io::real(), folder.path(), "x", false)->complete);
}

TEST(DiskRowsTest, SampleIdsThatCannotBeAreDamage) {
  const TempFolder folder;
  auto settings = settings_of(folder, dense_spec());
  {
    DiskRows rows(settings);
    put(rows, dense_spec(), {1, 2});
  }
  settings.ids_max = 1002;
  DiskRows rows(settings);
  EXPECT_EQ(rows_in(rows, dense_spec(), {1, 2}), Numbers{1});
}

TEST(DiskRowsTest, UsersOfOneFolderShareTheStoreUntilTheFolderIsAnother) {
  const TempFolder folder;
  const auto settings = settings_of(folder, dense_spec());
  const auto one = DiskRows::shared(settings);
  EXPECT_EQ(DiskRows::shared(settings), one);
  fs::rename(folder.path(), folder.path() + "-old");
  fs::create_directory(folder.path());
  EXPECT_NE(DiskRows::shared(settings), one);
  fs::remove_all(folder.path() + "-old");
}

TEST(SpilledRowsTest, WhatDoesNotFitIntoMemoryGoesToTheFolder) {
  for (const ElementSpec& spec : all_specs()) {
    const TempFolder folder;
    const auto memory = std::make_shared<MemoryRows>(20'000);
    const auto disk = std::make_shared<DiskRows>(settings_of(folder, spec));
    SpilledRows rows(memory, disk);
    const Numbers all = count_from(0, 2000);
    for (std::uint64_t first = 0; first < 2000; first += 100)
      put(rows, spec, count_from(first, 100));
    EXPECT_TRUE(memory->full());
    EXPECT_GT(disk->rows(), 0U);
    EXPECT_LT(disk->rows(), 2000U) << spec.text();
    EXPECT_EQ(rows_in(rows, spec, all), all);
    EXPECT_TRUE(rows.has(0) && rows.has(1999) && !rows.has(2000));
  }
}

}  // namespace
}  // namespace penstock
