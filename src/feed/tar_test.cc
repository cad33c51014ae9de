// Samples of tar files through a loader.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"
#include "record/compressed_for_tests.h"
#include "record/decompressor.h"
#include "record/tar_for_tests.h"

namespace penstock {
namespace {

using for_tests::pax_entry;
using for_tests::pax_line;
using for_tests::tar_end;
using for_tests::tar_entry;
using for_tests::tar_file;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int kFiles = 4;
constexpr int kSamples = 25;  // of a file

std::string image(int file, int sample) {
  return fmt::format("pixels {}.{}", file, sample) + std::string(1000, 'p');
}

std::string archive(int file) {
  std::string text = tar_entry({.name = "data/", .type = '5'});
  for (int i = 0; i < kSamples; ++i) {
    const std::string key = fmt::format("data/{}.of/{:03}", file, i);
    // As Python writes it when it has fractions of a second.
    text += pax_entry(pax_line("mtime", "1700000000.25")) + tar_file(key + ".jpg", image(file, i));
    text += tar_file(key + ".cls", fmt::format("{}\n", file * 100 + i));
  }
  return text + tar_end();
}

class TarFilesTest : public testing::Test {
 protected:
  TarFilesTest() {
    for (int file = 0; file < kFiles; ++file) {
      folder_.write(fmt::format("plain-{:02}.tar", file), archive(file));
      folder_.write(fmt::format("packed-{:02}.tar.gz", file),
                    for_tests::stored_gzip(archive(file)));
      folder_.write(fmt::format("zst-{:02}.tar.zst", file), for_tests::stored_zstd(archive(file)));
      for (int i = 0; i < kSamples; ++i) labels_.push_back(file * 100 + i);
    }
  }
  [[nodiscard]] Dataset data(const std::string& name = "plain-{00..03}.tar",
                             const TarOptions& options = {}) const {
    return from_tar({folder_.path(name)}, options);
  }
  static std::vector<std::int64_t> labels_of(Loader& loader) {
    std::vector<std::int64_t> labels;
    for (const Batch& batch : loader) {
      for (std::size_t row = 0; row < batch.rows(); ++row) {
        const Sample sample = batch.row(row);
        const auto label = sample["cls"].item<std::int64_t>();
        labels.push_back(label);
        EXPECT_EQ(sample["jpg"].text(),
                  image(static_cast<int>(label / 100), static_cast<int>(label % 100)));
      }
    }
    return labels;
  }
  static std::vector<std::int64_t> labels_of(const Dataset& batched,
                                             const LoaderOptions& options = {}) {
    Loader loader(batched, options);
    return labels_of(loader);
  }

  const TempFolder folder_;
  std::vector<std::int64_t> labels_;
};

TEST_F(TarFilesTest, SamplesComeOnceInTheOrderOfTheFiles) {
  EXPECT_EQ(data().cardinality(), Cardinality::of(kFiles * kSamples));
  EXPECT_EQ(data().element_spec().text(), "{cls: i64[], jpg: bytes[]}");
  EXPECT_EQ(labels_of(data().batch(7)), labels_);
}

TEST_F(TarFilesTest, AShuffleMixesAllFilesAndLosesNothing) {
  auto labels = labels_of(data().shuffle({.seed = 3}).batch(8));
  EXPECT_NE(labels, labels_);
  EXPECT_FALSE(std::ranges::is_sorted(std::span(labels).first(10)));
  std::ranges::sort(labels);
  EXPECT_EQ(labels, labels_);
}

TEST_F(TarFilesTest, CompressedFilesAreStreamsOfTheSameSamples) {
  EXPECT_TRUE(data("packed-*.tar.gz").streamed());
  EXPECT_EQ(labels_of(data("packed-*.tar.gz").batch(7)), labels_);
  if (!can_decompress(Compression::zstd)) GTEST_SKIP() << "this build has no zstd";
  EXPECT_EQ(labels_of(data("zst-*").batch(7)), labels_);
}

TEST_F(TarFilesTest, AStreamKeepsTheHeadersOfItsFirstSampleHoweverTheyAreCut) {
  // Before the first sample is so much that its headers lie across the end of a piece of 256 KiB.
  constexpr std::size_t kPiece = std::size_t{256} << 10;
  for (std::size_t before = kPiece - 2560; before <= kPiece; before += 512) {
    const std::string text = tar_file("README", std::string(before - 512, 'r')) +
                             pax_entry(pax_line("path", "long/name.x")) + tar_file("short", "it") +
                             tar_file("b.x", "other");
    folder_.write("late.tgz", for_tests::stored_gzip(text));
    TarOptions options;
    options.key = true;
    Loader loader(data("late.tgz", options).batch(1));
    EXPECT_EQ(loader.next()->row(0)["__key__"].text(), "long/name");
    EXPECT_EQ(loader.next()->row(0)["x"].text(), "other");
  }
}

TEST_F(TarFilesTest, ResumingAtEveryStepGivesTheRest) {
  for (const Dataset& batched : {data().shuffle({.seed = 5}).batch(8),
                                 data("packed-*.tar.gz").shuffle({.window = 30}).batch(8)}) {
    const auto whole = labels_of(batched);
    Loader loader(batched);
    for (std::size_t taken = 8; loader.next(); taken += 8) {
      Loader resumed(batched);
      resumed.restore(loader.state());
      if (taken >= whole.size()) break;  // the state is that of the next epoch
      EXPECT_THAT(labels_of(resumed),
                  testing::ElementsAreArray(whole.begin() + static_cast<std::ptrdiff_t>(taken),
                                            whole.end()));
    }
  }
}

TEST_F(TarFilesTest, BadSamplesAreSkippedAndListed) {
  std::string text =
      tar_file("a.jpg", image(0, 0)) + tar_file("a.cls", "0") + tar_file("b.jpg", "x") +
      tar_file("b.cls", "cat") + tar_file("c.jpg", "no label") + tar_file("d.jpg", "x") +
      tar_entry({.name = "d.cls", .type = '2'}) + tar_file("../e.jpg", "x") +
      tar_file("../e.cls", "1") + tar_file("f.jpg", image(0, 5)) + tar_file("f.cls", "5");
  std::string damaged = tar_file("g.jpg", "x");
  damaged[0] = 'h';
  text += damaged + archive(1);
  folder_.write("bad.tar", text);
  folder_.write("bad.tgz", for_tests::stored_gzip(text));
  TarOptions options;
  options.fields = {{"jpg", "jpg;png"}, {"cls", "cls"}};
  for (const char* name : {"bad.tar", "bad.tgz"}) {
    Loader loader(data(name, options).batch(2), {.on_error = OnError::skip});
    EXPECT_THAT(labels_of(loader), ElementsAre(0, 5)) << name;
    std::vector<std::string> reasons;
    for (const auto& entry : loader.ledger().entries()) reasons.push_back(entry.reason);
    EXPECT_THAT(
        reasons,
        ElementsAre(HasSubstr("record 1 (byte 2560): member \"b.cls\" is \"cat\", which is no i64"),
                    HasSubstr("sample \"c\" has no member with the extension cls"),
                    HasSubstr("member \"d.cls\" is a symbolic link, which is not read"),
                    HasSubstr("member \"../e.jpg\" has an unsafe name"),
                    HasSubstr("the checksum of a header is wrong")))
        << name;
  }
  Loader raising(data("bad.tar", options).batch(2));
  EXPECT_THAT([&] { labels_of(raising); }, testing::ThrowsMessage<SampleError>(
                                               AllOf(HasSubstr("\"cat\""), HasSubstr("bad.tar"))));
}

TEST_F(TarFilesTest, ASerializedDatasetReadsTheSame) {
  TarOptions options;
  options.fields = {{"jpg", "png;jpg"}, {"cls", "cls"}};
  options.dtypes = {{"cls", Dtype::i64}};
  options.key = true;
  for (const char* name : {"plain-*", "packed-*"}) {
    const Dataset batched = data(name, options).batch(9);
    const Plan plan(batched);
    const Plan back = Plan::parse(plan.serialize(), {});
    EXPECT_EQ(back.serialize(), plan.serialize());
    EXPECT_EQ(back.digests(), plan.digests());
    EXPECT_EQ(back.explain(), plan.explain());
  }
}

TEST_F(TarFilesTest, MistakesAreConfigErrors) {
  TarOptions options;
  options.fields = {{"x", ""}};
  EXPECT_THAT([&] { (void)data("plain-*", options); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("from_tar: field \"x\"")));
  folder_.write("not.tar", std::string(2000, 'x'));
  EXPECT_THAT([&] { (void)data("not.tar"); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("the checksum of a header is wrong")));
}

}  // namespace
}  // namespace penstock
