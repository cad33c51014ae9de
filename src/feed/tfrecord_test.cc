// TFRecord files through a loader.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"
#include "record/compressed_for_tests.h"
#include "record/example_encode.h"
#include "record/tfrecord.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

constexpr std::int64_t kFiles = 4;
constexpr std::int64_t kFileSamples = 25;

Sample sample_of(std::int64_t number) {
  return Sample::dict({{"id", Tensor::scalar(number)},
                       {"image/encoded", Tensor::bytes(fmt::format("image {}", number))},
                       {"x", Tensor::of(std::vector<float>{static_cast<float>(number), 0.5F})},
                       {"tokens", Tensor::of(std::vector<std::int64_t>(
                                      static_cast<std::size_t>(number % 4), number))}});
}

std::string file_of(std::int64_t first, std::int64_t count) {
  std::string file;
  for (std::int64_t i = 0; i < count; ++i)
    append_tfrecord(file, encode_example(sample_of(first + i)));
  return file;
}

const std::vector<ExampleFeature> kFeatures{
    {.name = "id", .dtype = Dtype::i64},
    {.name = "image/encoded", .dtype = Dtype::bytes},
    {.name = "x", .dtype = Dtype::f32, .shape = {2}},
    {.name = "tokens", .dtype = Dtype::i32, .shape = {kUnknown}}};

class FromTfrecordTest : public testing::Test {
 protected:
  FromTfrecordTest() {
    for (std::int64_t i = 0; i < kFiles; ++i) {
      const std::string file = file_of(i * kFileSamples, kFileSamples);
      folder_.write(fmt::format("plain/{}.tfrecord", i), file);
      folder_.write(fmt::format("packed/{}.tfrecord.gz", i), for_tests::stored_gzip(file));
    }
  }
  [[nodiscard]] Dataset data(const TfrecordOptions& options = {},
                             const std::string& pattern = "plain/*") const {
    return from_tfrecord({folder_.path(pattern)}, options);
  }
  /// The ids of all samples; the other fields must be theirs.
  static std::vector<std::int64_t> ids(Loader& loader) {
    std::vector<std::int64_t> ids;
    for (const Batch& batch : loader) {
      for (std::size_t row = 0; row < batch.rows(); ++row) {
        const Sample sample = batch.row(row);
        const auto id = sample["id"].item<std::int64_t>();
        EXPECT_EQ(sample["image/encoded"].text(), fmt::format("image {}", id));
        EXPECT_EQ(sample["x"].values<float>()[0], static_cast<float>(id));
        EXPECT_EQ(sample["tokens"].shape(), Shape{id % 4});
        ids.push_back(id);
      }
    }
    return ids;
  }
  static std::vector<std::int64_t> ids(const Dataset& batched, const LoaderOptions& options = {}) {
    Loader loader(batched, options);
    return ids(loader);
  }
  static std::vector<std::int64_t> all_ids() {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < kFiles * kFileSamples; ++i) all.push_back(i);
    return all;
  }

  const TempFolder folder_;
};

TEST_F(FromTfrecordTest, RecordsComeInTheOrderOfTheFiles) {
  const Dataset declared = data({.features = kFeatures});
  EXPECT_EQ(declared.cardinality(), Cardinality::of(100));
  EXPECT_EQ(declared.element_spec().text(),
            "{id: i64[], image/encoded: bytes[], tokens: i32[?], x: f32[2]}");
  EXPECT_EQ(ids(declared.batch(7)), all_ids());
  EXPECT_EQ(ids(data().batch(7)), all_ids());
}

TEST_F(FromTfrecordTest, AShuffleDeliversEachRecordOnceAndResumesAnywhere) {
  const Dataset shuffled = data({.features = kFeatures}).shuffle({.seed = 3}).batch(8);
  const auto whole = ids(shuffled);
  EXPECT_NE(whole, all_ids());
  EXPECT_EQ(ids(shuffled, {.threads = 0}), whole);
  auto sorted = whole;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, all_ids());
  Loader loader(shuffled);
  for (std::ptrdiff_t taken = 8; loader.next() && taken < std::ssize(whole); taken += 8) {
    Loader resumed(shuffled);
    resumed.restore(loader.state());
    EXPECT_EQ(ids(resumed), std::vector<std::int64_t>(whole.begin() + taken, whole.end()));
  }
}

TEST_F(FromTfrecordTest, ExplainSaysWhatWasInferredAndLeftOut) {
  std::string file;
  append_tfrecord(
      file, encode_example(Sample::dict({{"a", Tensor::bytes("x")}, {"b", Tensor::scalar(1)}})));
  append_tfrecord(file, encode_example(Sample::dict({{"b", Tensor::scalar(2)}})));
  folder_.write("few.tfrecord", file);
  folder_.write("few.gz", for_tests::stored_gzip(file));
  for (const char* name : {"few.tfrecord", "few.gz"})
    EXPECT_THAT(Plan(data({}, name).batch(2)).explain(),
                HasSubstr("inferred from the first 2 records: {b: i64[]}; left out: a (absent in "
                          "some records)"));
}

TEST_F(FromTfrecordTest, CompressedFilesAreAStreamOfTheSameSamples) {
  const Dataset stream = data({}, "packed/*");
  EXPECT_TRUE(stream.streamed());
  EXPECT_EQ(ids(stream.batch(7)), all_ids());
  EXPECT_EQ(ids(data({.features = kFeatures}, "packed/*").batch(7)), all_ids());
}

TEST_F(FromTfrecordTest, RawRecordsAreTheirPayloads) {
  const Dataset raw = data({.raw = true});
  EXPECT_EQ(raw.element_spec(), ElementSpec::single(Dtype::bytes));
  Loader loader(raw.batch(100));
  const auto batch = loader.next();
  EXPECT_EQ(batch->row(42).tensor().text(), encode_example(sample_of(42)));
  EXPECT_THROW((void)data({.features = kFeatures, .raw = true}), ConfigError);
}

TEST_F(FromTfrecordTest, DamagedRecordsAreNamedAndSkipped) {
  std::string file = file_of(50, kFileSamples);
  file[30] = static_cast<char>(file[30] ^ 1);
  file.resize(file.size() - 3);
  folder_.write("plain/2.tfrecord", file);
  Loader loader(data({.features = kFeatures}).batch(10), {.on_error = OnError::skip});
  EXPECT_THAT(ids(loader), SizeIs(98));
  const auto& entries = loader.ledger().entries();
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_THAT(entries[0].reason, AllOf(HasSubstr("record 0"), HasSubstr("checksum")));
  EXPECT_THAT(entries[1].reason, AllOf(HasSubstr("record 24"), HasSubstr("the file ends after")));
  EXPECT_THAT(entries[0].file, HasSubstr("2.tfrecord"));
}

TEST_F(FromTfrecordTest, AnotherProcessReadsTheSame) {
  std::vector<ExampleFeature> features = kFeatures;
  features.push_back({.name = "absent", .dtype = Dtype::f32, .shape = {2}});
  features.back().missing = Tensor::of(std::vector<float>{1.25F, -3});
  features.push_back(
      {.name = "none", .dtype = Dtype::u8, .shape = {2}, .missing = {}, .sequence = true});
  features.push_back({.name = "text", .dtype = Dtype::string});
  features.back().missing = Tensor::bytes("\xc3\xa9", Dtype::string);
  for (const Dataset& dataset : {data({.features = features}), data(), data({.raw = true})}) {
    const Plan plan(dataset.shuffle({.seed = 1}).batch(6));
    const Plan back = Plan::parse(plan.serialize(), {});
    EXPECT_EQ(back.digests(), plan.digests());
    EXPECT_EQ(back.explain(), plan.explain());
    EXPECT_EQ(back.serialize(), plan.serialize());
  }
  std::vector<ExampleFeature> others = features;
  others[4].missing = Tensor::scalar(0.0F);
  EXPECT_NE(data({.features = features}).batch(2).digests(),
            data({.features = others}).batch(2).digests());
}

/// A folder as TensorFlow Datasets writes it.
class TfdsFolderTest : public FromTfrecordTest {
 protected:
  TfdsFolderTest() {
    folder_.write("tfds/features.json", R"({"featuresDict": {"features": {
        "id": {"classLabel": {}}, "x": {"tensor": {"dtype": "float32",
                                                   "shape": {"dimensions": ["2"]}}},
        "image": {"featuresDict": {"features": {"encoded": {"image": {}}}}},
        "tokens": {"sequence": {"feature": {"tensor": {"dtype": "int16", "shape": {}}}}},
        "clip": {"video": {}}}}})");
    folder_.write("tfds/dataset_info.json", "{}");
    folder_.write("tfds/own-train.tfrecord-00001-of-00002", file_of(60, 40));
    folder_.write("tfds/own-train.tfrecord-00000-of-00002", file_of(0, 60));
    folder_.write("tfds/own-test.tfrecord-00000-of-00001", file_of(7, 1));
  }
};

TEST_F(TfdsFolderTest, FeaturesAreThoseOfItsFile) {
  const Dataset train = data({.split = "train"}, "tfds");
  EXPECT_EQ(train.element_spec().text(),
            "{id: i64[], image/encoded: bytes[], tokens: i16[?], x: f32[2]}");
  EXPECT_EQ(ids(train.batch(9)), all_ids());
  const Plan plan(train.batch(9));
  EXPECT_THAT(plan.explain(), HasSubstr("read as features.json says; left out: clip (several"));
  EXPECT_EQ(Plan::parse(plan.serialize(), {}).explain(), plan.explain());
  EXPECT_EQ(ids(data({.split = "test"}, "tfds/").batch(9)), std::vector<std::int64_t>{7});
}

TEST_F(TfdsFolderTest, DeclaredFeaturesAndRawRecordsAreReadInstead) {
  EXPECT_EQ(
      data({.features = {{"x", Dtype::f16, {2}}}, .split = "test"}, "tfds").element_spec().text(),
      "{x: f16[2]}");
  EXPECT_EQ(data({.raw = true, .split = "test"}, "tfds").element_spec(),
            ElementSpec::single(Dtype::bytes));
}

TEST_F(TfdsFolderTest, ASplitMustBeChosen) {
  const auto refuses = [&](const TfrecordOptions& options, const std::string& path,
                           const std::string& why) {
    EXPECT_THAT([&] { (void)data(options, path); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
  };
  refuses({}, "tfds", "choose one of the splits: test, train");
  refuses({.split = "valid"}, "tfds", "no split \"valid\"");
  refuses({.split = "train"}, "plain/*", "no path is a folder of TensorFlow Datasets");
  refuses({}, "plain", "is a folder");
  folder_.write("empty/features.json", "{}");
  refuses({}, "empty", "no *.tfrecord* files");
}

TEST_F(TfdsFolderTest, FoldersWithOtherFeaturesCannotBeJoined) {
  folder_.write("other/features.json",
                R"({"featuresDict": {"features": {"id": {"classLabel": {}}}}})");
  folder_.write("other/own-train.tfrecord-00000-of-00001", file_of(0, 1));
  EXPECT_THAT(
      [&] {
        (void)from_tfrecord({folder_.path("tfds"), folder_.path("other")}, {.split = "train"});
      },
      ThrowsMessage<ConfigError>(HasSubstr("has other features than")));
  EXPECT_EQ(
      from_tfrecord({folder_.path("tfds"), folder_.path("tfds")}, {.split = "train"}).cardinality(),
      Cardinality::of(200));
}

}  // namespace
}  // namespace penstock
