// Text, CSV and JSON lines through a loader.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/penstock.h"
#include "record/compressed_for_tests.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class TextFormatsTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    folder_.write(name, text);
    return folder_.path(name);
  }
  /// Records 0 to 149 in three files, with fields "id", "name" and "x".
  void write_csv() {
    for (int file = 0; file < 3; ++file) {
      std::string text = "id,name,x\r\n";
      for (int i = 0; i < 50; ++i)
        text += fmt::format("{},\"name\n{}\",{}.5\r\n\n", file * 50 + i, i, i);
      write(fmt::format("{}.csv", file), text);
      write(fmt::format("{}.csv.gz", file), for_tests::stored_gzip(text));
    }
  }
  void write_jsonl() {
    for (int file = 0; file < 3; ++file) {
      std::string text = "\xEF\xBB\xBF";
      for (int i = 0; i < 50; ++i)
        text += fmt::format(R"({{"id": {}, "x": {{"y": [{}, 0.5]}}}})", file * 50 + i, i) + "\n\n";
      write(fmt::format("{}.jsonl", file), text);
      write(fmt::format("{}.jsonl.gz", file), for_tests::stored_gzip(text));
    }
  }
  static std::vector<std::int64_t> ids_of(Loader& loader) {
    std::vector<std::int64_t> ids;
    for (const Batch& batch : loader)
      for (std::size_t row = 0; row < batch.rows(); ++row)
        ids.push_back(batch.row(row)["id"].item<std::int64_t>());
    return ids;
  }
  static std::vector<std::int64_t> ids_of(const Dataset& batched,
                                          const LoaderOptions& options = {}) {
    Loader loader(batched, options);
    return ids_of(loader);
  }
  /// Every record once, shuffled as a whole; the rest after a state is the rest.
  static void expect_whole(const Dataset& data) {
    EXPECT_EQ(data.cardinality(), Cardinality::of(150));
    std::vector<std::int64_t> all(150);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(ids_of(data.batch(7)), all);
    const Dataset shuffled = data.shuffle({.seed = 3}).batch(8);
    const auto once = ids_of(shuffled);
    EXPECT_NE(once, all);
    EXPECT_EQ(ids_of(shuffled, {.threads = 0}), once);
    auto sorted = once;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, all);
    Loader loader(shuffled);
    for (int step = 0; step < 5; ++step) (void)loader.next();
    Loader resumed(shuffled);
    resumed.restore(loader.state());
    EXPECT_EQ(ids_of(resumed), std::vector<std::int64_t>(once.begin() + 40, once.end()));
  }
  /// The same dataset after a round trip through JSON.
  static void expect_sent(const Dataset& data) {
    const Plan plan(data.batch(2));
    const Plan sent = Plan::parse(plan.serialize());
    EXPECT_EQ(sent.serialize(), plan.serialize());
    EXPECT_EQ(sent.explain(), plan.explain());
    EXPECT_EQ(sent.digests(), plan.digests());
  }

  const TempFolder folder_;
};

std::vector<std::string> lines_of(const Dataset& dataset) {
  std::vector<std::string> lines;
  for (std::uint64_t i = 0; i < dataset.cardinality().count(); ++i)
    lines.emplace_back(dataset.sample(i).tensor().text());
  return lines;
}

TEST_F(TextFormatsTest, LinesAreThoseBetweenLineEnds) {
  EXPECT_THAT(lines_of(from_text({write("a", "one\ntwo\r\n\nfour\rstill four\nlast")})),
              ElementsAre("one", "two", "", "four\rstill four", "last"));
  EXPECT_THAT(lines_of(from_text({write("b", "one\n")})), ElementsAre("one"));
  EXPECT_THAT(lines_of(from_text({write("d", "\xEF\xBB\xBFmarked\ntwo")})),
              ElementsAre("marked", "two"));
  EXPECT_EQ(from_text({write("c", "")}).cardinality().count(), 0U);
}

TEST_F(TextFormatsTest, FilesFollowEachOtherAndPatternsAreSorted) {
  write("2.txt", "c\n");
  write("1.txt", "a\nb\n");
  write("0.txt", "");
  const std::string first = write("first", "x\n");
  EXPECT_THAT(lines_of(from_text({first, folder_.path("*.txt"), first})),
              ElementsAre("x", "a", "b", "c", "x"));
}

TEST_F(TextFormatsTest, ALineThatIsNotUtf8IsNamedOrSkipped) {
  const Dataset lines = from_text({write("bad.txt", "\xC3\xA4hm\n\xFF\nb\n")}).batch(3);
  Loader strict(lines, {.threads = 0});
  EXPECT_THAT([&] { (void)strict.next(); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("bad.txt"), HasSubstr("line 2 (byte 5)"),
                                               HasSubstr("not UTF-8"))));
  Loader loader(lines, {.threads = 1, .on_error = OnError::skip});
  EXPECT_EQ(loader.next()->rows(), 2U);
}

TEST_F(TextFormatsTest, MissingFilesAreNamed) {
  EXPECT_THAT([&] { (void)from_text({folder_.path("*.txt")}); },
              ThrowsMessage<ConfigError>(HasSubstr("*.txt")));
  EXPECT_THAT([] { (void)from_text({}); }, ThrowsMessage<ConfigError>(HasSubstr("from_text")));
}

TEST_F(TextFormatsTest, AStateKnowsOtherText) {
  const Dataset one = from_text({write("one", "a\nb\nc\n")});
  const Dataset other = from_text({write("other", "a\nb\nd\n")});
  EXPECT_NE(one.digests().order, other.digests().order);
}

TEST_F(TextFormatsTest, LinesOfCompressedFilesAreTheSame) {
  const std::string text = "one\n\ntwo\r\nthree";
  const Dataset lines = from_text({write("a.gz", for_tests::stored_gzip(text))});
  EXPECT_TRUE(lines.streamed());
  Loader loader(lines.batch(4));
  const Batch batch = *loader.next();
  ASSERT_EQ(batch.rows(), 4U);
  EXPECT_EQ(batch.row(2).tensor().text(), "two");
  EXPECT_EQ(batch.row(3).tensor().text(), "three");
}

TEST_F(TextFormatsTest, CsvFilesAreShuffledAsAWhole) {
  write_csv();
  const Dataset data = from_csv({folder_.path("*.csv")});
  EXPECT_EQ(data.element_spec().text(), "{id: i64[], name: string[], x: f32[]}");
  EXPECT_EQ(data.sample(60)["name"].text(), "name\n10");
  EXPECT_EQ(data.sample(60)["x"].item<float>(), 10.5F);
  expect_whole(data);
  expect_whole(from_csv({folder_.path("*.csv")}, {.columns = {"id"}}));
  EXPECT_EQ(ids_of(from_csv({folder_.path("*.csv.gz")}).batch(7)), ids_of(data.batch(7)));
}

TEST_F(TextFormatsTest, JsonLinesAreShuffledAsAWhole) {
  write_jsonl();
  const Dataset data = from_jsonl({folder_.path("*.jsonl")});
  EXPECT_EQ(data.element_spec().text(), "{id: i64[], x: {y: f32[?]}}");
  EXPECT_THAT(data.sample(60)["x/y"].values<float>(), ElementsAre(10.0F, 0.5F));
  expect_whole(data);
  EXPECT_EQ(ids_of(from_jsonl({folder_.path("*.jsonl.gz")}).batch(7)), ids_of(data.batch(7)));
  EXPECT_EQ(from_jsonl({folder_.path("*.jsonl")}, {.raw = true}).sample(60).tensor().text(),
            R"({"id": 60, "x": {"y": [10, 0.5]}})");
}

TEST_F(TextFormatsTest, DatasetsOfTextAreSentWithTheirOptions) {
  write_csv();
  write_jsonl();
  const std::string csv = folder_.path("*.csv");
  const std::string jsonl = folder_.path("*.jsonl");
  expect_sent(from_text({csv}));
  expect_sent(from_csv({csv}));
  expect_sent(from_csv({csv}, {.comment = '#',
                               .header = false,
                               .names = {"a", "b", "c"},
                               .columns = {"c", "a"},
                               .types = {{"c", Dtype::string}, {"a", Dtype::string}},
                               .floats = Dtype::f64,
                               .nulls = {{"c", std::string("none")}},
                               .missing = {"-"},
                               .infer_records = 5,
                               .files = {.index = "memory"}}));
  expect_sent(from_csv({csv}, {.nulls = {{"x", std::nan("")}, {"id", -1.0}}}));
  expect_sent(from_jsonl({jsonl}));
  expect_sent(from_jsonl({jsonl}, {.raw = true}));
  expect_sent(from_jsonl({jsonl}, {.fields = {{"x/y", Dtype::f16, {2}}, {"id", Dtype::string, {}}},
                                   .nulls = {{"x/y", 0.5}}}));
  EXPECT_NE(from_csv({csv}).digests(), from_csv({csv}, {.floats = Dtype::f64}).digests());
  EXPECT_NE(from_jsonl({jsonl}).digests(), from_jsonl({jsonl}, {.nulls = {{"id", 0.0}}}).digests());
}

TEST_F(TextFormatsTest, BadRecordsAreNamedOrSkipped) {
  write("a.csv", "id,x\n0,1.5\n1,oops\n2\n3,2.5\n\"4,1\n");
  write("a.jsonl", "{\"id\": 0}\n{\"id\": \"x\"}\n[]\n{\"id\": 3}\n{\"id\": 4\n");
  for (const bool csv : {true, false}) {
    const Dataset data = csv ? from_csv({folder_.path("a.csv")}, {.infer_records = 1})
                             : from_jsonl({folder_.path("a.jsonl")}, {.infer_records = 1});
    Loader loader(data.batch(8), {.on_error = OnError::skip});
    EXPECT_THAT(ids_of(loader), ElementsAre(0, 3));
    const auto& entries = loader.ledger().entries();
    ASSERT_THAT(entries, SizeIs(3));
    EXPECT_THAT(entries[0].reason, HasSubstr(csv ? "record 1 (byte 11): column \"x\": \"oops\""
                                                 : "record 1 (byte 10): field \"id\""));
    EXPECT_THAT(entries[0].file, HasSubstr(csv ? "a.csv" : "a.jsonl"));
    EXPECT_THAT(entries[1].reason, HasSubstr(csv ? "1 fields" : "a list"));
    EXPECT_THAT(entries[2].reason, HasSubstr(csv ? "never end" : "ends within"));
  }
}

TEST_F(TextFormatsTest, CsvFilesWithOtherHeadersAreRefused) {
  const std::string one = write("1.csv", "a,b\n1,2\n");
  const std::string two = write("2.csv", "b,a\n3,4\n");
  EXPECT_THAT([&] { (void)from_csv({one, two}); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("2.csv"), HasSubstr("1.csv"),
                                               HasSubstr("its column 1 is \"b\""))));
  // The header of a compressed file is known when the stream gets there.
  const std::string packed = write("1.gz", for_tests::stored_gzip("a,b\n1,2\n"));
  const std::string other = write("2.gz", for_tests::stored_gzip("b,a\n3,4\n5,6\n"));
  Loader loader(from_csv({packed, other, packed}).batch(9), {.on_error = OnError::skip});
  EXPECT_EQ(loader.next()->rows(), 2U);
  ASSERT_THAT(loader.ledger().entries(), SizeIs(2));
  EXPECT_THAT(loader.ledger().entries()[1].reason, HasSubstr("its column 1 is \"b\""));
}

TEST_F(TextFormatsTest, FilesWithoutRecordsAreNotAsked) {
  const std::string none = write("0.csv", "");
  const std::string header = write("1.csv", "a,b\n");
  const std::string one = write("2.csv", "a,b\n1,2\n");
  EXPECT_EQ(from_csv({none, header, one}).cardinality().count(), 1U);
  EXPECT_EQ(from_csv({none, header, one}).sample(0)["b"].item<std::int64_t>(), 2);
  EXPECT_THAT([&] { (void)from_csv({header}); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot be inferred")));
  EXPECT_EQ(
      from_csv({header}, {.types = {{"a", Dtype::i64}, {"b", Dtype::f32}}}).cardinality().count(),
      0U);
  EXPECT_EQ(from_jsonl({none, write("1.jsonl", "\n{\"a\": 1}\n")}).cardinality().count(), 1U);
}

}  // namespace
}  // namespace penstock
