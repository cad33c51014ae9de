// Chunks of LitData through a loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"
#include "record/litdata_for_tests.h"

namespace penstock {
namespace {

using for_tests::litdata_chunk;
using for_tests::litdata_dict;
using for_tests::litdata_entry;
using for_tests::litdata_index;
using for_tests::litdata_item;
using for_tests::litdata_leaf;
using for_tests::little_bytes;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

const Json kSpec =
    litdata_dict({{"tokens", litdata_leaf()}, {"id", litdata_leaf()}, {"text", litdata_leaf()}});

std::string item(int id) {
  return litdata_item({std::string(static_cast<std::size_t>(1 + id % 3), 't'),
                       little_bytes(static_cast<std::uint64_t>(id), 8),
                       fmt::format("text {}", id)});
}

class LitDataFolderTest : public testing::Test {
 protected:
  /// Chunks of 20, 5 and 8 items, one of them in a folder below.
  LitDataFolderTest() {
    int id = 0;
    for (const int items : {20, 5, 8}) {
      std::vector<std::string> all(static_cast<std::size_t>(items));
      for (std::string& each : all) each = item(id++);
      const std::string name =
          fmt::format("{}chunk-0-{}.bin", chunks_.empty() ? "sub/" : "", chunks_.size());
      write_chunk(name, litdata_chunk(all), all.size());
    }
    write_index();
  }
  void write_chunk(const std::string& name, const std::string& chunk, std::size_t items) {
    folder_.write(name, chunk);
    chunks_.push_back(litdata_entry(name, chunk.size(), items));
  }
  void write_index() const {
    folder_.write("index.json",
                  litdata_index(kSpec, {"no_header_tensor:11", "int", "str"}, chunks_).dump());
  }
  [[nodiscard]] Dataset data() const { return from_litdata(folder_.path("")); }
  void expect_refused(const std::string& words) const {
    EXPECT_THAT([this] { (void)data(); }, ThrowsMessage<ConfigError>(HasSubstr(words)));
  }
  static std::vector<std::int64_t> ids_of(Loader& loader) {
    std::vector<std::int64_t> ids;
    for (const Batch& batch : loader) {
      for (std::size_t row = 0; row < batch.rows(); ++row) {
        const Sample got = batch.row(row);
        ids.push_back(got["id"].item<std::int64_t>());
        EXPECT_EQ(got["text"].text(), fmt::format("text {}", ids.back()));
        EXPECT_EQ(got["tokens"].shape(), Shape{1 + ids.back() % 3});
      }
    }
    return ids;
  }

  const TempFolder folder_;
  std::vector<Json> chunks_;
};

TEST_F(LitDataFolderTest, ItemsComeOnceInTheOrderOfTheIndex) {
  EXPECT_EQ(data().cardinality(), Cardinality::of(33));
  EXPECT_EQ(data().element_spec().text(), "{id: i64[], text: string[], tokens: u8[?]}");
  std::vector<std::int64_t> wanted(33);
  std::iota(wanted.begin(), wanted.end(), 0);
  Loader in_order(data().batch(7));
  EXPECT_EQ(ids_of(in_order), wanted);
  Loader shuffled(data().shuffle({.seed = 3}).batch(7));
  auto ids = ids_of(shuffled);
  EXPECT_NE(ids, wanted);
  std::ranges::sort(ids);
  EXPECT_EQ(ids, wanted);
  EXPECT_FALSE(std::filesystem::exists(folder_.path(".chunk-0-2.bin.pstkidx")));
}

TEST_F(LitDataFolderTest, ResumingGivesTheRest) {
  const Dataset batched = data().shuffle({.seed = 5}).batch(8);
  Loader whole_loader(batched);
  const auto whole = ids_of(whole_loader);
  Loader loader(batched);
  (void)loader.next();
  (void)loader.next();
  Loader resumed(batched);
  resumed.restore(loader.state());
  EXPECT_THAT(ids_of(resumed), testing::ElementsAreArray(whole.begin() + 16, whole.end()));
}

TEST_F(LitDataFolderTest, ABadItemIsSkippedAndListed) {
  std::string chunk = litdata_chunk({item(0), item(1), item(2)});
  chunk[chunk.find("text 1") - 8 - 2 - 4] = '\x70';  // the size of its text
  folder_.write("sub/chunk-0-0.bin", chunk);
  chunks_[0] = litdata_entry("sub/chunk-0-0.bin", chunk.size(), 3);
  write_index();
  Loader loader(data().batch(4), {.on_error = OnError::skip});
  EXPECT_THAT(ids_of(loader), SizeIs(15));
  ASSERT_THAT(loader.ledger().entries(), SizeIs(1));
  EXPECT_THAT(
      loader.ledger().entries()[0].reason,
      AllOf(HasSubstr("record 1 (byte"), HasSubstr("field \"text\" should have 112 bytes")));
  EXPECT_THAT(loader.ledger().entries()[0].file, HasSubstr("sub/chunk-0-0.bin"));
}

TEST_F(LitDataFolderTest, ASerializedDatasetReadsTheSame) {
  LitDataOptions options;
  options.fields = {"id", "tokens"};
  options.shapes = {{"tokens", {kUnknown}}};
  const Plan plan(from_litdata(folder_.path(""), options).batch(9));
  const Plan back = Plan::parse(plan.serialize(), {});
  EXPECT_EQ(back.serialize(), plan.serialize());
  EXPECT_EQ(back.digests(), plan.digests());
  EXPECT_EQ(back.explain(), plan.explain());
}

TEST_F(LitDataFolderTest, ChunksThatAreNotAsTheIndexSaysAreRefused) {
  const std::string name = "chunk-0-2.bin";
  chunks_[2]["chunk_size"] = 9;
  write_index();
  expect_refused("chunk-0-2.bin has 8 samples, and index.json says 9");
  chunks_[2]["chunk_size"] = 8;
  const auto bytes = chunks_[2]["chunk_bytes"].get<std::size_t>();
  chunks_[2]["chunk_bytes"] = bytes + 1;
  write_index();
  expect_refused(
      fmt::format("chunk-0-2.bin has {} bytes, and index.json says {}", bytes, bytes + 1));
  // Older versions do not count the offsets.
  chunks_[2]["chunk_bytes"] = bytes - 40;
  write_index();
  EXPECT_EQ(data().cardinality(), Cardinality::of(33));
  folder_.write(name, std::string(bytes, 'x'));
  expect_refused("chunk-0-2.bin is damaged: the chunk ends within its offsets");
  folder_.write(name, "LDFZ01" + std::string(bytes - 6, '\0'));
  expect_refused("chunk-0-2.bin has its items in frames of zstd");
  folder_.write(name, std::string(bytes - 8, 'x') + std::string("LDARW01\0", 8));
  expect_refused("chunk-0-2.bin has its items as rows of Arrow");
  std::filesystem::remove(folder_.path(name));
  expect_refused("chunk-0-2.bin is missing");
  std::filesystem::remove(folder_.path("index.json"));
  expect_refused("index.json cannot be read");
}

TEST_F(LitDataFolderTest, CompressedChunksAreReadOnceTheyAreDecompressed) {
  const std::string chunk = litdata_chunk({item(0), item(1)});
  Json index = litdata_index(kSpec, {"no_header_tensor:11", "int", "str"},
                             {litdata_entry("c.zstd.bin", chunk.size(), 2)});
  index["config"]["compression"] = "zstd";
  folder_.write("index.json", index.dump());
  folder_.write("c.zstd.bin", "compressed");
  expect_refused("c.zstd.bin is compressed as a whole");
  folder_.write("c.bin", chunk);
  Loader loader(data().batch(2));
  EXPECT_EQ(ids_of(loader), (std::vector<std::int64_t>{0, 1}));
}

TEST_F(LitDataFolderTest, TokensAreReadInWindows) {
  std::vector<Json> chunks;
  for (const int tokens : {7, 2, 9}) {
    std::string document;
    for (int i = 0; i < tokens; ++i)
      document +=
          little_bytes(static_cast<std::uint64_t>(tokens) * 100 + static_cast<unsigned>(i), 2);
    const std::string chunk = litdata_chunk({document.substr(0, 2), document.substr(2)});
    const std::string name = fmt::format("t{}.bin", tokens);
    folder_.write(name, chunk);
    chunks.push_back(litdata_entry(name, chunk.size(), 2));
    chunks.back()["dim"] = tokens;
  }
  const auto write = [&] {
    folder_.write("index.json",
                  litdata_index(litdata_leaf(), {"no_header_tensor:20"}, chunks).dump());
  };
  write();
  LitDataOptions options;
  options.length = 3;
  const Dataset windows = from_litdata(folder_.path(""), options);
  EXPECT_EQ(windows.cardinality(), Cardinality::of(5));
  Loader loader(windows.batch(5));
  const auto batch = loader.next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_THAT(batch->row(1).tensor().values<std::uint16_t>(), testing::ElementsAre(703, 704, 705));
  EXPECT_THAT(batch->row(2).tensor().values<std::uint16_t>(), testing::ElementsAre(900, 901, 902));
  EXPECT_EQ(data().cardinality(), Cardinality::of(6));
  chunks[1]["dim"] = 3;
  write();
  expect_refused("t2.bin has not the 3 tokens that index.json says");
}

}  // namespace
}  // namespace penstock
