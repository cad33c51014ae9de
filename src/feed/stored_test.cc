// Rows on disk through loaders: cache in a folder, caches of streams, save and load.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/fault.h"
#include "base/temp_folder_for_tests.h"
#include "base/thread.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Values = std::vector<std::int64_t>;
namespace fs = std::filesystem;

/// Counts what is computed.
struct Counted {
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  [[nodiscard]] Dataset dense(std::int64_t size) const {
    return Dataset::range(size).map(
        [calls = calls](std::int64_t x) {
          ++*calls;
          return x * 3;
        },
        {.name = "dense"});
  }
  /// A dict with a text and a list of different lengths; the spec is unknown unless declared.
  [[nodiscard]] Dataset mixed(std::int64_t size, bool declared) const {
    std::optional<ElementSpec> spec;
    if (declared)
      spec = ElementSpec::dict(
          {{"id", Dtype::i64, {}}, {"list", Dtype::i16, {kUnknown}}, {"text", Dtype::string, {}}});
    return Dataset::range(size).map(
        [calls = calls](const Sample& sample) {
          ++*calls;
          const auto x = sample.tensor().item<std::int64_t>();
          return Sample::dict(
              {{"id", Tensor::scalar(x)},
               {"list", Tensor::of(std::vector<std::int16_t>(static_cast<std::size_t>(x % 4), 7))},
               {"text",
                Tensor::bytes(std::string(static_cast<std::size_t>(x % 9), 'y'), Dtype::string)}});
        },
        {.name = "mixed", .spec = spec});
  }
};

/// Every byte and id of an epoch.
std::string content(Loader& loader) {
  std::string text;
  while (auto batch = loader.next()) {
    text += fmt::format("[{}]", batch->rows());
    for (std::size_t row = 0; row < batch->rows(); ++row) {
      text += fmt::format(" {}:", batch->sample_id()[row]);
      const Sample sample = batch->row(row);
      for (const Tensor& leaf : sample.leaves())
        text += fmt::format("{}{}|", ElementSpec::of(leaf).text(), leaf.text());
    }
  }
  return text;
}
std::string content(const Dataset& batched, const LoaderOptions& options = {}) {
  Loader loader(batched, options);
  return content(loader);
}

CacheOptions in(const TempFolder& folder) {
  CacheOptions options;
  options.folder = folder.path("cache");
  return options;
}

class Told {
 public:
  Told() : before_(set_report_sink([this](const std::string& text) { texts.push_back(text); })) {}
  ~Told() { set_report_sink(before_); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  std::vector<std::string> texts;

 private:
  ReportSink before_;
};

std::vector<Dataset> one_of_each(const Counted& counted) {
  return {counted.dense(40),
          counted.mixed(40, true),
          counted.mixed(40, false),
          counted.dense(40).shuffle({.seed = 5}),
          counted.dense(20).repeat(2),
          counted.mixed(17, true).concatenate(counted.mixed(12, true)),
          counted.dense(40).select([](std::int64_t x) { return x % 2 == 0; }, {.name = "even"})};
}

TEST(StoredTest, ACachedPassEqualsAnUncachedOneAndIsReadByLaterDatasets) {
  const Counted counted;
  for (std::size_t i = 0; i < one_of_each(counted).size(); ++i) {
    const Dataset data = one_of_each(counted)[i];
    SCOPED_TRACE(data.describe());
    const TempFolder folder;
    const std::string expected = content(data.batch(7));
    const Dataset cached = data.cache(in(folder));
    EXPECT_EQ(content(cached.batch(7)), expected);
    EXPECT_EQ(content(cached.batch(7), {.threads = 0}), expected);
    const int before = *counted.calls;
    EXPECT_EQ(content(cached.batch(7)), expected);
    const Dataset again = one_of_each(counted)[i].resolve();
    const int resolved = *counted.calls;
    EXPECT_EQ(content(again.cache(in(folder)).batch(7)), expected);
    EXPECT_EQ(*counted.calls, resolved) << "a later run computes nothing";
    EXPECT_LE(before, resolved);
    EXPECT_EQ(content(Dataset::load(in(folder).folder).batch(7)).size() > 0, true);
  }
}

TEST(StoredTest, CachedBatchesAreRows) {
  const Counted counted;
  const TempFolder folder;
  const std::string expected = content(counted.dense(40).batch(7));
  EXPECT_EQ(content(counted.dense(40).batch(7).cache(in(folder))), expected);
  *counted.calls = 0;
  EXPECT_EQ(content(counted.dense(40).batch(7).cache(in(folder))), expected);
  EXPECT_EQ(*counted.calls, 0);
}

TEST(StoredTest, APartialPassIsCompletedByOtherLoaders) {
  const Counted counted;
  const TempFolder folder;
  (void)content(counted.dense(40).cache(in(folder)).take(12).batch(4));
  EXPECT_EQ(*counted.calls, 12);
  const Dataset rest = counted.dense(40).cache(in(folder));
  Loader shuffled(rest.shuffle({.seed = 3}).batch(5));
  (void)content(shuffled);
  EXPECT_EQ(*counted.calls, 40);
  EXPECT_THAT(shuffled.plan().explain(), HasSubstr("40 of 40 rows on disk"));
  EXPECT_THAT(rest.describe(), HasSubstr(fmt::format("cache(\"{}\")", in(folder).folder)));
}

TEST(StoredTest, TwoLoadersAtOnceShareTheRows) {
  const Counted counted;
  const TempFolder folder;
  const std::string expected = content(counted.mixed(200, true).batch(8));
  *counted.calls = 0;
  std::string first;
  std::string second;
  {
    Thread other("other",
                 [&] { first = content(counted.mixed(200, true).cache(in(folder)).batch(8)); });
    second = content(counted.mixed(200, true).cache(in(folder)).batch(8));
    other.join();
  }
  EXPECT_EQ(first, expected);
  EXPECT_EQ(second, expected);
  EXPECT_EQ(*counted.calls, 200);
}

TEST(StoredTest, FailedRowsAreNotStored) {
  const TempFolder folder;
  const auto broken = std::make_shared<std::atomic<bool>>(true);
  const Dataset data = Dataset::range(30)
                           .map(
                               [broken](std::int64_t x) {
                                 if (*broken && x % 10 == 3) throw std::runtime_error("no");
                                 return x;
                               },
                               {.name = "odd"})
                           .cache(in(folder));
  Loader skipping(data.batch(6), {.on_error = OnError::skip, .skip_limit = 10});
  (void)content(skipping);
  EXPECT_EQ(skipping.ledger().count(), 3U);
  *broken = false;
  EXPECT_EQ(content(data.batch(6)), content(Dataset::range(30).batch(6)));
}

TEST(StoredTest, AFolderOfOtherDataIsRefusedAtOnce) {
  const Counted counted;
  const TempFolder folder;
  (void)counted.dense(40).cache(in(folder));
  EXPECT_THROW((void)counted.dense(41).cache(in(folder)), ConfigError);
  EXPECT_THROW((void)counted.mixed(40, true).cache(in(folder)), ConfigError);
  const auto even = [](std::int64_t) { return true; };
  const Dataset selected = counted.dense(40).select(even, {.name = "all"}).cache(in(folder));
  EXPECT_THROW((void)Plan(selected.resolve().batch(2)), ConfigError)
      << "what is not resolved is compared later";
}

TEST(StoredTest, AFolderThatCannotBeCreatedIsRefusedAtOnce) {
  const TempFolder folder;
  folder.write("file", "");
  CacheOptions options;
  options.folder = folder.path("file") + "/below";
  EXPECT_THROW((void)Dataset::range(4).cache(options), ConfigError);
  EXPECT_THROW((void)Dataset::range(4).snapshot(""), ConfigError);
  options.folder = "";
  options.when_full = WhenFull::spill;
  EXPECT_THROW((void)Dataset::range(4).cache(options), ConfigError);
  EXPECT_THROW((void)Dataset::range(4).shuffle({.seed = Seed::random()}).cache(in(folder)),
               ConfigError);
}

TEST(StoredTest, AFullDiskCostsNoRow) {
  const Counted counted;
  const TempFolder folder;
  const Told told;
  const std::string expected = content(counted.dense(40).batch(4));
  const Dataset cached = counted.dense(40).cache(in(folder));
  fault::arm("append.full", 6);
  EXPECT_EQ(content(cached.batch(4)), expected);
  EXPECT_EQ(content(cached.batch(4)), expected);
  fault::disarm_all();
  EXPECT_THAT(told.texts, ElementsAre(HasSubstr("No space left")));
}

TEST(StoredTest, RowsThatDoNotFitIntoMemorySpill) {
  const Counted counted;
  const TempFolder folder;
  CacheOptions options = in(folder);
  options.bytes_max = 30'000;
  options.when_full = WhenFull::spill;
  const std::string expected = content(counted.dense(3000).batch(100));
  *counted.calls = 0;
  const Dataset cached = counted.dense(3000).cache(options);
  EXPECT_EQ(content(cached.batch(100)), expected);
  EXPECT_EQ(content(cached.batch(100)), expected);
  EXPECT_EQ(*counted.calls, 3000);
}

TEST(StoredTest, ACacheWithRandomOpsBelowHasAFolderForEachPlace) {
  const TempFolder folder;
  const auto jitter = [](std::int64_t x, Rng& rng) {
    return x * 1000 + static_cast<std::int64_t>(rng.integer(1000));
  };
  const Told told;
  const auto doubled = [&](bool cached) {
    Dataset part = Dataset::range(20).map(jitter, {.name = "jitter"});
    if (cached) part = part.cache(in(folder));
    return part.concatenate(part).batch(40);
  };
  const std::string expected = content(doubled(false));
  EXPECT_EQ(content(doubled(true)), expected);
  EXPECT_EQ(content(doubled(true)), expected);
}

TEST(StoredTest, AnAutomaticPlaceIsBelowTheFirstRandomOp) {
  const TempFolder folder;
  const Counted counted;
  const auto jitter = [](std::int64_t x, Rng& rng) {
    return x * 1000 + static_cast<std::int64_t>(rng.integer(1000));
  };
  for (CacheOptions options : {CacheOptions{}, in(folder)}) {
    const Told told;
    options.place = CachePlace::automatic;
    *counted.calls = 0;
    const Dataset fresh = counted.dense(20).map(jitter, {.name = "jitter"});
    Loader loader(fresh.cache(options).batch(5));
    Loader uncached(fresh.batch(5), {.threads = 0});
    const std::string first = content(loader);
    const std::string second = content(loader);
    EXPECT_NE(first, second);
    EXPECT_EQ(*counted.calls, 20);
    EXPECT_EQ(content(uncached), first);
    EXPECT_EQ(content(uncached), second);
    EXPECT_THAT(loader.plan().explain(), HasSubstr("was moved before map \"jitter\""));
    EXPECT_THAT(told.texts, IsEmpty());
  }
}

/// A stream of numbers that counts what is pulled.
struct Stream {
  std::shared_ptr<std::atomic<int>> pulled = std::make_shared<std::atomic<int>>(0);
  std::int64_t bad = -1;
  [[nodiscard]] Dataset dataset(std::int64_t size) const {
    return Dataset::from_generator(
        [me = *this, size] {
          return [me, size, i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
            if (i == me.bad) throw std::runtime_error("broken");
            if (i == size) return std::nullopt;
            ++*me.pulled;
            return i++;
          };
        },
        {.name = "stream"});
  }
};

Values values_of(const Dataset& data) {
  Loader loader(data.batch(8));
  Values values;
  while (auto batch = loader.next())
    for (const std::int64_t x : batch->values<std::int64_t>()) values.push_back(x);
  return values;
}

Values count_to(std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i);
  return values;
}

TEST(StoredTest, TheCacheOfAStreamIsIndexed) {
  for (const bool on_disk : {false, true}) {
    const TempFolder folder;
    const Stream stream;
    const CacheOptions options = on_disk ? in(folder) : CacheOptions{};
    const Dataset cached = stream.dataset(3000).cache(options);
    EXPECT_FALSE(cached.streamed());
    EXPECT_TRUE(cached.cardinality().is_unknown());
    EXPECT_EQ(*stream.pulled, 0);
    EXPECT_EQ(cached.resolve().cardinality(), Cardinality::of(3000));
    EXPECT_EQ(values_of(cached), count_to(3000));
    Values shuffled = values_of(cached.shuffle({.seed = 1}));
    EXPECT_NE(shuffled, count_to(3000));
    std::ranges::sort(shuffled);
    EXPECT_EQ(shuffled, count_to(3000));
    EXPECT_EQ(*stream.pulled, 3000) << "it was read once";
    if (!on_disk) continue;
    const Dataset later = stream.dataset(3000).cache(options);
    EXPECT_EQ(later.cardinality(), Cardinality::of(3000)) << "known at once";
    EXPECT_EQ(values_of(later.skip(10)), values_of(cached.skip(10)));
    EXPECT_EQ(*stream.pulled, 3000);
    EXPECT_EQ(Plan(later.batch(4)).check().samples, 3000U);
  }
}

TEST(StoredTest, FilteredAndMappedStreamsAreCachedWithAnySpec) {
  const Counted counted;
  const TempFolder folder;
  const Dataset data =
      counted.mixed(500, false)
          .filter([](const Sample& sample) { return sample["id"].item<std::int64_t>() % 3 == 0; },
                  {.name = "third"});
  const Dataset cached =
      data.cache(in(folder)).map([](const Sample& sample) { return sample["id"]; }, {.name = "id"});
  const Dataset plain = data.map([](const Sample& sample) { return sample["id"]; }, {.name = "id"});
  EXPECT_EQ(values_of(cached), values_of(plain));
}

TEST(StoredTest, AFailingElementEndsTheBuildAndTheNextOneStartsAgain) {
  const TempFolder folder;
  Stream stream;
  stream.bad = 1500;
  EXPECT_THROW((void)stream.dataset(3000).cache(in(folder)).resolve(), SampleError);
  EXPECT_THROW((void)Dataset::load(in(folder).folder), ConfigError) << "it is incomplete";
  stream.bad = -1;
  EXPECT_EQ(values_of(stream.dataset(3000).cache(in(folder))), count_to(3000));
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(in(folder).folder))
    files += entry.path().extension() == ".psr" ? 1 : 0;
  EXPECT_EQ(files, 1U) << "rows of the first build were removed";
}

TEST(StoredTest, AStreamThatDoesNotFitIsRefused) {
  const TempFolder folder;
  const Stream stream;
  CacheOptions options;
  options.bytes_max = 20'000;
  EXPECT_THROW((void)stream.dataset(3000).cache(options).resolve(), ResourceError);
  options.folder = folder.path("small");
  EXPECT_THROW((void)stream.dataset(3000).cache(options).resolve(), ResourceError);
  options.when_full = WhenFull::spill;
  EXPECT_THROW((void)stream.dataset(3000).cache(options), ConfigError);
}

TEST(StoredTest, ADamagedRowOfAStreamFailsAndNamesItsFile) {
  const TempFolder folder;
  const Stream stream;
  (void)stream.dataset(100).cache(in(folder)).resolve();
  for (const auto& entry : fs::directory_iterator(in(folder).folder)) {
    if (entry.path().extension() != ".psr") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(entry.path())) - 1);
    file.put('\x55');
  }
  const Dataset cached = stream.dataset(100).cache(in(folder));
  Loader loader(cached.batch(10), {.on_error = OnError::skip});
  (void)content(loader);
  ASSERT_EQ(loader.ledger().count(), 1U);
  try {
    (void)cached.sample(99);
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("row 99"));
    EXPECT_THAT(error.what(), HasSubstr(in(folder).folder));
  }
}

TEST(StoredTest, WhatIsSavedIsLoaded) {
  const Counted counted;
  for (const Dataset& data : one_of_each(counted)) {
    SCOPED_TRACE(data.describe());
    for (const std::uint32_t files : {1U, 3U}) {
      const TempFolder folder;
      data.save(folder.path("saved"), {.files = files});
      const Dataset loaded = Dataset::load(folder.path("saved"));
      EXPECT_EQ(loaded.cardinality(), data.resolve().cardinality());
      EXPECT_EQ(loaded.element_spec(), data.element_spec());
      Loader one(loaded.batch(7));
      Loader other(data.resolve().batch(7));
      while (auto batch = one.next()) {
        const auto wanted = other.next();
        ASSERT_TRUE(wanted);
        for (std::size_t row = 0; row < batch->rows(); ++row)
          for (std::size_t i = 0; i < batch->row(row).leaves().size(); ++i)
            EXPECT_EQ(batch->row(row).leaves()[i].text(), wanted->row(row).leaves()[i].text());
      }
      EXPECT_FALSE(other.next());
    }
  }
}

TEST(StoredTest, StreamsAreSavedToo) {
  const TempFolder folder;
  const Stream stream;
  stream.dataset(2500).save(folder.path("saved"), {.files = 2});
  EXPECT_EQ(values_of(Dataset::load(folder.path("saved"))), count_to(2500));
  EXPECT_THROW(stream.dataset(2500).save(folder.path("saved")), ConfigError);
  stream.dataset(30).save(folder.path("saved"), {.overwrite = true});
  EXPECT_EQ(values_of(Dataset::load(folder.path("saved"))), count_to(30));
}

TEST(StoredTest, ASaveThatFailedGoesOnWhereItWas) {
  const TempFolder folder;
  const Counted counted;
  const auto save = [&] { counted.dense(20'000).save(folder.path("saved")); };
  fault::arm("append.full", 10);
  EXPECT_THROW(save(), IoError);
  fault::disarm_all();
  EXPECT_THROW((void)Dataset::load(folder.path("saved")), ConfigError);
  EXPECT_THROW(counted.dense(20'001).save(folder.path("saved")), ConfigError) << "other data";
  const int before = *counted.calls;
  save();
  EXPECT_LT(*counted.calls, before + 20'000);
  EXPECT_EQ(Dataset::load(folder.path("saved")).cardinality(), Cardinality::of(20'000));
}

TEST(StoredTest, WhatCannotBeSavedIsRefused) {
  const TempFolder folder;
  EXPECT_THROW(Dataset::range(4).batch(2).save(folder.path("a")), ConfigError);
  EXPECT_THROW(Dataset::range(4).repeat().save(folder.path("a")), ConfigError);
  EXPECT_THROW(Dataset::range(4).save(""), ConfigError);
  EXPECT_THROW(Dataset::range(4).save(folder.path("a"), {.files = 0}), ConfigError);
  folder.write("file", "");
  EXPECT_THROW(Dataset::range(4).save(folder.path("file")), IoError);
  const Dataset bad = Dataset::range(9).map([](std::int64_t x) {
    if (x == 5) throw std::runtime_error("five");
    return x;
  });
  EXPECT_THROW(bad.save(folder.path("bad")), SampleError);
  EXPECT_THROW((void)Dataset::load(folder.path("bad")), ConfigError);
  EXPECT_THROW((void)Dataset::load(folder.path("nothing")), ConfigError);
}

TEST(StoredTest, ALoadedDatasetThatLostRowsIsRefused) {
  const TempFolder folder;
  Dataset::range(100).save(folder.path("saved"));
  for (const auto& entry : fs::directory_iterator(folder.path("saved")))
    if (entry.path().extension() == ".psr")
      fs::resize_file(entry.path(), fs::file_size(entry.path()) - 4000);
  try {
    (void)Dataset::load(folder.path("saved"));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("of its 100 rows are missing"));
  }
}

TEST(StoredTest, PlansOfStoredDataAreSent) {
  const TempFolder folder;
  const Stream stream;
  Dataset::range(50).save(folder.path("saved"));
  const Dataset cached = stream.dataset(60).cache(in(folder)).resolve();
  const auto jitter = [](std::int64_t x, Rng& rng) {
    return x + static_cast<std::int64_t>(rng.integer(9));
  };
  CacheOptions moved;
  moved.folder = folder.path("moved");
  moved.place = CachePlace::automatic;
  const Dataset random = Dataset::range(20).map(jitter, {.name = "jitter"}).cache(moved);
  const Dataset data = Dataset::load(folder.path("saved"))
                           .concatenate(cached)
                           .concatenate(random)
                           .shuffle()
                           .batch(8);
  const Plan plan(data);
  const Plan back = Plan::parse(plan.serialize(), {data});
  EXPECT_EQ(back.digests(), plan.digests());
  EXPECT_EQ(back.explain(), plan.explain());
  EXPECT_EQ(back.serialize(), plan.serialize());
  Loader one(plan);
  Loader other(back);
  EXPECT_EQ(content(one), content(other));
}

TEST(StoredTest, AStateOfACachedPassResumesInAnotherRun) {
  const TempFolder folder;
  const Counted counted;
  const auto loader = [&] {
    return Loader(counted.dense(40).cache(in(folder)).shuffle({.seed = 2}).batch(4));
  };
  Loader first = loader();
  for (int i = 0; i < 3; ++i) (void)first.next();
  const State state = first.state();
  Loader resumed = loader();
  resumed.restore(state);
  EXPECT_EQ(content(resumed), content(first));
}

}  // namespace
}  // namespace penstock
