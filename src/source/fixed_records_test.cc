#include "penstock/fixed_records.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/plan.h"
#include "record/zip_archives_for_tests.h"
#include "sample/rows.h"
#include "source/fixed_records.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::little;
using testing::raw;
using ::testing::ThrowsMessage;

std::vector<std::string> texts_of(const Dataset& dataset) {
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < dataset.cardinality().count(); ++i)
    texts.emplace_back(dataset.sample(i).tensor().text());
  return texts;
}

std::string numbered(std::uint64_t count, int bytes) {
  std::string text;
  for (std::uint64_t i = 0; i < count; ++i) text += little(i, bytes);
  return text;
}

/// The numbers that a loader delivers in one epoch, as they come.
std::vector<std::uint32_t> delivered(const Dataset& batches) {
  std::vector<std::uint32_t> numbers;
  for (const Batch& batch : Loader(batches, {.threads = 2})) {
    const auto some = batch.values<std::uint32_t>();
    numbers.insert(numbers.end(), some.begin(), some.end());
  }
  return numbers;
}

TEST(FixedRecordsTest, RecordsAreFoundBetweenHeaderAndFooter) {
  const TempFolder folder;
  folder.write("b", "HHabcdefF");
  folder.write("a", "HHghiF");
  folder.write("c", "HHF");
  const std::vector<std::string> paths{folder.path("b"), folder.path("[ac]")};
  const Dataset data = from_records(paths, 3, {.header_bytes = 2, .footer_bytes = 1});
  EXPECT_THAT(texts_of(data), ElementsAre("abc", "def", "ghi"));
  EXPECT_EQ(data.element_spec(), ElementSpec::single(Dtype::bytes));
  EXPECT_THAT(data.describe(), HasSubstr("from_records(3 x bytes[], 3 files)"));
}

TEST(FixedRecordsTest, ValuesAreDense) {
  const TempFolder folder;
  folder.write("x", numbered(12, 4));
  const Dataset data = from_records({folder.path("x")}, 12, {.dtype = Dtype::u32, .shape = {1, 3}});
  EXPECT_EQ(data.element_spec(), ElementSpec::single(Dtype::u32, {1, 3}));
  EXPECT_THAT(data.sample(2).tensor().values<std::uint32_t>(), ElementsAre(6, 7, 8));
  folder.write("flags", std::string("\x00\x01\x02\xFF", 4));
  const Dataset flags =
      from_records({folder.path("flags")}, 4, {.dtype = Dtype::boolean, .shape = {4}});
  EXPECT_EQ(flags.sample(0).tensor().text(), std::string("\x00\x01\x01\x01", 4));
}

TEST(FixedRecordsTest, AFileOfAnotherSizeIsRefusedUnlessTheRestIsDropped) {
  const TempFolder folder;
  const std::string path = folder.write("x", "abcdefgh");
  EXPECT_THAT([&] { from_records({path}, 3); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(path), HasSubstr("8 bytes"),
                                               HasSubstr("2 bytes too many"),
                                               HasSubstr("partial=\"drop\""))));
  EXPECT_THAT([&] { from_records({path}, 3, {.header_bytes = 9}); },
              ThrowsMessage<ConfigError>(HasSubstr("fewer than its header and footer")));
  EXPECT_THAT(texts_of(from_records({path}, 3, {.partial = "drop"})), ElementsAre("abc", "def"));
  EXPECT_THAT(texts_of(from_records({path}, 3, {.header_bytes = 9, .partial = "drop"})),
              ElementsAre());
}

TEST(FixedRecordsTest, WrongOptionsAreRefused) {
  const TempFolder folder;
  const std::string path = folder.write("x", "abcdefgh");
  const auto refusal = [&](std::uint64_t bytes, const FixedRecordOptions& options) {
    try {
      from_records({path}, bytes, options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(refusal(0, {}), HasSubstr("record_bytes must be from 1"));
  EXPECT_THAT(refusal(4, {.partial = "keep"}), HasSubstr("partial is \"keep\""));
  EXPECT_THAT(refusal(4, {.dtype = Dtype::f32, .shape = {2}}), HasSubstr("needs 8 bytes"));
  EXPECT_THAT(refusal(4, {.dtype = Dtype::string}), HasSubstr("leave dtype out"));
  EXPECT_THAT(refusal(4, {.dtype = Dtype::f32, .shape = {-1}}), HasSubstr("cannot be f32[?]"));
  EXPECT_THAT(refusal(4, {.dtype = Dtype::f32, .shape = {1LL << 40, 1LL << 40}}),
              HasSubstr("cannot be"));
  EXPECT_THAT(refusal(4, {.shape = {2}}), HasSubstr("needs a dtype"));
  EXPECT_THAT([&] { from_records({folder.path("none")}, 4); },
              ThrowsMessage<ConfigError>(HasSubstr("no file matches")));
}

TEST(FixedRecordsTest, EveryOrderDeliversTheSameRecords) {
  const TempFolder folder;
  for (std::uint64_t file = 0; file < 5; ++file) {
    std::string text;
    for (std::uint64_t i = 0; i < 300; ++i)
      text += little(file * 300 + i, 4) + std::string(file == 4 ? 396 : 0, 'x');
    folder.write("part" + std::to_string(file), text);
  }
  const auto records = [&](const std::string& name, std::uint64_t bytes) {
    const auto per_record = static_cast<std::int64_t>(bytes / 4);
    return from_records({folder.path(name)}, bytes, {.dtype = Dtype::u32, .shape = {per_record}});
  };
  const auto take_first = [](const Dataset& data) {
    return data.map([](const Sample& sample) {
      return Sample(Tensor::scalar(sample.tensor().values<std::uint32_t>()[0]));
    });
  };
  const Dataset small = take_first(records("part[0-3]", 4));
  const Dataset large = take_first(records("part4", 400));
  for (const Dataset& data : {small.concatenate(large), small.concatenate(large).shuffle(),
                              small.concatenate(large).shuffle({.blocks = 50}),
                              large.shuffle({.window = 7}).concatenate(small),
                              small.repeat(2).shuffle({.seed = 3}).concatenate(large)}) {
    std::vector<std::uint32_t> numbers = delivered(data.batch(64));
    std::vector<std::uint32_t> single;
    for (std::uint64_t i = 0; i < data.cardinality().count(); ++i)
      single.push_back(data.sample(i).tensor().item<std::uint32_t>());
    EXPECT_EQ(numbers, single);
    std::ranges::sort(numbers);
    numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
    EXPECT_EQ(numbers.size(), 1500U);
  }
}

/// Counts reads, of which some fail.
class CountingReader final : public Reader {
 public:
  Result<Bytes> get(const Read& read, const ReadKey&) override {
    return read_now(Io::real(), read);
  }
  Result<void> read_at(const FileHandle& file, std::uint64_t offset, std::span<std::byte> out,
                       const ReadKey&) override {
    ++reads;
    bytes += out.size();
    if (offset <= bad && bad < offset + out.size()) return Failure{"a bad block"};
    return Io::real().read_at(file, offset, out);
  }
  [[nodiscard]] bool by_row() const override { return each_row; }
  Result<Bytes> get_file(const std::string&, std::uint64_t) override { return Failure{"unused"}; }

  std::uint64_t reads = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bad = UINT64_MAX;
  bool each_row = false;
};

struct Decoded {
  std::vector<std::uint32_t> values;
  Result<void> done;
};

Decoded decode(const Source& source, std::vector<std::uint64_t> numbers, CountingReader& reader) {
  Scratch scratch;
  const Context context(scratch, reader, nullptr);
  const Scratch::Frame frame(scratch);
  const ScratchBlock block(source.spec(), numbers.size(), scratch);
  Decoded decoded{{}, source.decode(numbers, {}, block.view(), context)};
  const std::size_t rows = decoded.done ? numbers.size() : decoded.done.failure().row;
  for (std::size_t row = 0; row < rows; ++row)
    decoded.values.push_back(read_row(block.view(), row).tensor().values<std::uint32_t>()[0]);
  return decoded;
}

TEST(FixedRecordsTest, NeighborsAreReadTogether) {
  const TempFolder folder;
  folder.write("x", numbered(20'000, 4));
  const auto source = make_fixed_records(Io::real(), {folder.path("x")}, 4, {.dtype = Dtype::u32});
  const auto reads_of = [&](const std::vector<std::uint64_t>& numbers) {
    CountingReader reader;
    const Decoded decoded = decode(*source, numbers, reader);
    EXPECT_TRUE(decoded.done);
    EXPECT_TRUE(std::ranges::equal(decoded.values, numbers));
    return reader.reads;
  };
  std::vector<std::uint64_t> all(1000);
  std::iota(all.begin(), all.end(), std::uint64_t{5});
  EXPECT_EQ(reads_of(all), 1U);
  std::ranges::reverse(all);
  EXPECT_EQ(reads_of(all), 1U);
  EXPECT_EQ(reads_of({7, 3, 5, 7}), 1U);
  EXPECT_EQ(reads_of({3, 15'000, 4}), 2U);
  EXPECT_EQ(reads_of({9, 10, 11, 15'000, 15'001}), 2U);
}

TEST(FixedRecordsTest, RowsThatWereReadAheadAreAskedForOneByOne) {
  const TempFolder folder;
  folder.write("x", numbered(100, 4));
  const auto source = make_fixed_records(Io::real(), {folder.path("x")}, 4, {.dtype = Dtype::u32});
  CountingReader reader;
  reader.each_row = true;
  EXPECT_THAT(decode(*source, {1, 2, 3, 9}, reader).values, ElementsAre(1, 2, 3, 9));
  EXPECT_EQ(reader.reads, 4U);
  EXPECT_EQ(reader.bytes, 16U);
  std::vector<Read> reads;
  source->reads(7, reads);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].offset, 28U);
  EXPECT_EQ(reads[0].length, 4U);
  EXPECT_EQ(reads[0].object, folder.path("x"));
}

TEST(FixedRecordsTest, AFailedReadIsThatOfItsRowAndTheRowsBeforeItAreThere) {
  const TempFolder folder;
  folder.write("x", numbered(100, 4));
  const auto source = make_fixed_records(Io::real(), {folder.path("x")}, 4, {.dtype = Dtype::u32});
  CountingReader reader;
  reader.bad = 41;  // in row 10
  const Decoded decoded = decode(*source, {12, 8, 10, 9}, reader);
  ASSERT_FALSE(decoded.done);
  EXPECT_EQ(decoded.done.failure().row, 2U);
  EXPECT_THAT(decoded.values, ElementsAre(12, 8));
}

TEST(FixedRecordsTest, AFileThatWasCutMeanwhileFailsItsRows) {
  const TempFolder folder;
  const std::string path = folder.write("x", numbered(100, 4));
  const Dataset data = from_records({path}, 4, {.dtype = Dtype::u32});
  std::filesystem::resize_file(path, 200);
  EXPECT_THAT(
      [&] { delivered(data.batch(10)); },
      ThrowsMessage<SampleError>(AllOf(HasSubstr(path), HasSubstr("define the dataset again"))));
}

TEST(FixedRecordsTest, ThePlanSaysHowLargeTheBlocksOfAShuffleAre) {
  const TempFolder folder;
  folder.write("x", std::string(1'024'000, 'x'));
  const Dataset data = from_records({folder.path("x")}, 1024);
  EXPECT_THAT(Plan(data.shuffle({.seed = 7, .blocks = 64}).batch(8)).explain(),
              HasSubstr("16 blocks of 64 samples in random order, mixed 16 at a time; a sample's "
                        "neighbors in a batch come from 16 blocks; at any time, reads are within "
                        "16 pieces of about 64 KiB\n"));
  // The neighbors of a shuffled order are not those of the file.
  EXPECT_THAT(Plan(data.shuffle().shuffle({.blocks = 64}).batch(8)).explain(),
              ::testing::Not(HasSubstr("KiB\n  note")));
}

TEST(FixedRecordsTest, APlanKeepsTheOptions) {
  const TempFolder folder;
  folder.write("x", "H" + numbered(10, 4) + "xy");
  const Dataset data =
      from_records({folder.path("x")}, 4,
                   {.header_bytes = 1, .partial = "drop", .dtype = Dtype::u32, .shape = {1}});
  const Plan back = Plan::parse(Plan(data.batch(3)).serialize(), {});
  EXPECT_EQ(back.dataset().describe(), data.batch(3).describe());
  EXPECT_EQ(back.digests(), Plan(data.batch(3)).digests());
}

}  // namespace
}  // namespace penstock
