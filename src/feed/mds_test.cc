// MDS shards through a loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"
#include "record/mds_for_tests.h"

namespace penstock {
namespace {

using for_tests::little_bytes;
using for_tests::mds_array;
using for_tests::mds_entry;
using for_tests::mds_sample;
using for_tests::mds_shard;
using for_tests::MdsTestColumn;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

const std::vector<MdsTestColumn> kColumns = {
    {"id", "int", 8}, {"text", "str"}, {"tokens", "ndarray:uint8"}};

std::string sample(int id) {
  return mds_sample(
      kColumns, {little_bytes(static_cast<std::uint64_t>(id), 8), fmt::format("text {}", id),
                 mds_array({1 + id % 3}, std::string(static_cast<std::size_t>(1 + id % 3), 't'))});
}

class MdsFolderTest : public testing::Test {
 protected:
  /// Shards of 20, 0 and 13 samples, one of them in a folder below.
  MdsFolderTest() {
    int id = 0;
    for (const int samples : {20, 0, 13}) {
      std::vector<std::string> all;
      for (int i = 0; i < samples; ++i) all.push_back(sample(id++));
      const std::string name =
          fmt::format("{}shard.{:05}.mds", shards_.empty() ? "sub/" : "", shards_.size());
      const std::string shard = mds_shard(kColumns, all);
      folder_.write(name, shard);
      shards_.push_back(mds_entry(kColumns, name, shard.size(), all.size()));
    }
    write_index();
  }
  void write_index() const {
    folder_.write("index.json", Json({{"version", 2}, {"shards", shards_}}).dump());
  }
  [[nodiscard]] Dataset data() const { return from_mds(folder_.path("")); }
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
  std::vector<Json> shards_;
};

TEST_F(MdsFolderTest, SamplesComeOnceInTheOrderOfTheIndex) {
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
  EXPECT_FALSE(std::filesystem::exists(folder_.path(".shard.00002.mds.pstkidx")));
}

TEST_F(MdsFolderTest, ResumingGivesTheRest) {
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

TEST_F(MdsFolderTest, ABadSampleIsSkippedAndListed) {
  std::string shard = mds_shard(kColumns, {sample(0), sample(1), sample(2)});
  shard[shard.find("text 1") - 8 - 8] = '\x70';  // the size of its text
  folder_.write("sub/shard.00000.mds", shard);
  shards_[0] = mds_entry(kColumns, "sub/shard.00000.mds", shard.size(), 3);
  write_index();
  Loader loader(data().batch(4), {.on_error = OnError::skip});
  EXPECT_THAT(ids_of(loader), SizeIs(15));
  ASSERT_THAT(loader.ledger().entries(), SizeIs(1));
  EXPECT_THAT(
      loader.ledger().entries()[0].reason,
      AllOf(HasSubstr("record 1 (byte"), HasSubstr("column \"text\" should have 112 bytes")));
  EXPECT_THAT(loader.ledger().entries()[0].file, HasSubstr("sub/shard.00000.mds"));
}

TEST_F(MdsFolderTest, ASerializedDatasetReadsTheSame) {
  MdsOptions options;
  options.columns = {"id", "tokens"};
  options.shapes = {{"tokens", {kUnknown}}};
  const Plan plan(from_mds(folder_.path(""), options).batch(9));
  const Plan back = Plan::parse(plan.serialize(), {});
  EXPECT_EQ(back.serialize(), plan.serialize());
  EXPECT_EQ(back.digests(), plan.digests());
  EXPECT_EQ(back.explain(), plan.explain());
}

TEST_F(MdsFolderTest, ShardsThatAreNotAsTheIndexSaysAreRefused) {
  const auto refused = [this](const std::string& words) {
    EXPECT_THAT([this] { (void)data(); }, ThrowsMessage<ConfigError>(HasSubstr(words)));
  };
  const std::string name = "shard.00002.mds";
  shards_[2]["samples"] = 14;
  write_index();
  refused("shard.00002.mds has 13 samples, and index.json says 14");
  shards_[2]["samples"] = 13;
  const auto bytes = shards_[2]["raw_data"]["bytes"].get<std::size_t>();
  shards_[2]["raw_data"]["bytes"] = bytes + 1;
  write_index();
  refused(fmt::format("shard.00002.mds has {} bytes, and index.json says {}", bytes, bytes + 1));
  shards_[2]["raw_data"]["bytes"] = bytes;
  write_index();
  folder_.write(name, std::string(bytes, 'x'));
  refused("shard.00002.mds is damaged: the shard ends within its offsets");
  std::filesystem::remove(folder_.path(name));
  refused("shard.00002.mds is missing");
  shards_[2]["zip_data"] = {{"basename", name + ".zstd"}, {"bytes", 7}, {"hashes", Json::object()}};
  write_index();
  refused("shard.00002.mds.zstd is a compressed form of it, which is not read");
  std::filesystem::remove(folder_.path("index.json"));
  refused("index.json cannot be read");
}

}  // namespace
}  // namespace penstock
