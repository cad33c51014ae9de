#include "record/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "penstock/error.h"
#include "record/tar_for_tests.h"
#include "record/tar_header.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using for_tests::gnu_long_name;
using for_tests::pax_entry;
using for_tests::pax_line;
using for_tests::tar_end;
using for_tests::tar_entry;
using for_tests::tar_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::ThrowsMessage;

struct Scan {
  std::vector<std::uint64_t> starts = {};
  ScanEnd end = {};
};

/// In pieces of `bytes`, without what the scanner need not see.
Scan scan(std::string_view file, std::size_t bytes = SIZE_MAX) {
  const auto scanner = make_tar_scanner();
  Scan found;
  for (std::uint64_t at = 0; at < file.size();) {
    const std::string_view piece = file.substr(at, bytes);
    const std::uint64_t skipped = scanner->scan(at, piece, found.starts);
    at += piece.size();
    at = skipped > file.size() - at ? file.size() : at + skipped;
  }
  found.end = scanner->finish(file.size(), found.starts);
  return found;
}

std::vector<std::string> records_of(const std::string& file) {
  Scan found = scan(file);
  std::vector<std::string> records;
  found.starts.push_back(found.end.end);
  for (std::size_t i = 0; i + 1 < found.starts.size(); ++i)
    records.push_back(file.substr(found.starts[i], found.starts[i + 1] - found.starts[i]));
  return records;
}

/// Decodes `record`, which is kept alive by nobody else.
Result<Sample> decode(const RecordDecoder& decoder, std::string_view record) {
  const auto owner = std::make_shared<const std::string>(record);
  Scratch scratch;
  const ScratchBlock block(decoder.spec(), 1, scratch);
  if (Result<void> done = decoder.decode({*owner, owner}, block.view(), 0, scratch); !done.ok())
    return std::move(done.failure());
  const Sample sample = read_row(block.view(), 0);
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : sample.leaves()) leaves.push_back(leaf.kept());
  return Sample::assemble(sample.structure(), std::move(leaves));
}

std::shared_ptr<const RecordDecoder> decoder_of(
    const std::vector<std::pair<std::string, std::string>>& fields) {
  TarOptions options;
  options.fields = fields;
  return make_tar_decoder(options, {});
}

std::string failure_of(const std::string& record,
                       const std::vector<std::pair<std::string, std::string>>& fields) {
  const Result<Sample> sample = decode(*decoder_of(fields), record);
  return sample.ok() ? "no failure" : sample.failure().message;
}

std::string two_samples() {
  return tar_file("a.jpg", "pixels of a") + tar_file("a.cls", "3\n") +
         tar_file("b.jpg", std::string(1000, 'b')) + tar_file("b.cls", "4") + tar_end();
}

TEST(TarScannerTest, ASampleIsWhatFollowsEachOtherWithOneKey) {
  const Scan found = scan(two_samples());
  EXPECT_THAT(found.starts, ElementsAre(0U, 2048U));
  EXPECT_EQ(found.end.end, 2048U + 512 + 1024 + 1024);
  EXPECT_EQ(found.end.damage, "");
}

TEST(TarScannerTest, TheSizeOfThePiecesMakesNoDifference) {
  std::string file = tar_entry({.name = "folder/", .type = '5'});
  for (int i = 0; i < 20; ++i) {
    file += gnu_long_name(fmt::format("{}{:03}.jpg", std::string(200, 'x'), i));
    file += tar_file("short", std::string(static_cast<std::size_t>(i) * 100, 'p'));
    file += pax_entry(pax_line("path", fmt::format("{}{:03}.cls", std::string(200, 'x'), i)));
    file += tar_file("short", "1");
  }
  for (const std::string& whole : {file + tar_end(), file.substr(0, file.size() - 700)}) {
    const Scan wanted = scan(whole);
    EXPECT_EQ(wanted.starts.size(), wanted.end.damage.empty() ? 20U : 21U);
    EXPECT_EQ(wanted.starts[0], 512U);
    for (const std::size_t bytes : {1, 7, 511, 512, 513, 1000, 4096, 10'000}) {
      const Scan found = scan(whole, bytes);
      EXPECT_EQ(found.starts, wanted.starts) << bytes;
      EXPECT_EQ(found.end.end, wanted.end.end);
      EXPECT_EQ(found.end.damage, wanted.end.damage);
    }
  }
}

TEST(TarScannerTest, TheMapOfASparseFileIsPassedOverInPiecesToo) {
  std::string header =
      tar_entry({.name = "some/longer/name/of/b.jpg", .type = 'S', .magic = "ustar  "});
  header[482] = 1;
  for_tests::set_tar_checksum(header);
  const std::string file = tar_file("a.jpg", "1") + header + std::string(504, 'm') +
                           std::string(8, '\0') + tar_file("some/longer/name/of/b.cls", "1");
  for (const std::size_t bytes : {100, 512, 700, 10'000})
    EXPECT_THAT(scan(file, bytes).starts, ElementsAre(0U, 1024U)) << bytes;
}

TEST(TarScannerTest, ContentIsNotLookedAt) {
  const std::string file = tar_file("a.jpg", std::string(100'000, 'a'));
  std::vector<std::uint64_t> starts;
  EXPECT_EQ(make_tar_scanner()->scan(0, file.substr(0, 512), starts), 100'352U);
  EXPECT_EQ(make_tar_scanner()->scan(0, file.substr(0, 600), starts), 100'352U - 88);
}

TEST(TarScannerTest, WhatBelongsToNoSampleStartsNoneAndDividesNone) {
  const std::string header = pax_entry(pax_line("comment", "of git"), 'g');
  const std::string between = tar_entry({.name = "b/", .type = '5'}) + tar_file("README", "x") +
                              tar_file("__info__", "x") + tar_file(".hidden.jpg", "x") + header;
  const Scan found = scan(header + between + tar_file("a.jpg", "1") + between +
                          tar_file("a.cls", "1") + tar_file("b.jpg", "2") + between + tar_end());
  const std::uint64_t first = header.size() + between.size();
  EXPECT_THAT(found.starts, ElementsAre(first, first + 2048 + between.size()));
  EXPECT_EQ(found.end.end, first + 2048 + between.size() + 1024 + between.size() - header.size());
}

TEST(TarScannerTest, ArchivesMayFollowEachOther) {
  const std::string one = tar_file("a.jpg", "1") + tar_end();
  EXPECT_THAT(scan(one + one).starts, ElementsAre(0U, 2048U));
  EXPECT_THAT(scan(one + one + std::string(7777, '\0')).end.damage, IsEmpty());
  EXPECT_THAT(scan(std::string(10'240, '\0')).starts, IsEmpty());
  EXPECT_THAT(scan("").starts, IsEmpty());
  EXPECT_THAT(scan(tar_file("a.jpg", "1")).end.damage, IsEmpty()) << "without an end";
  EXPECT_THAT(scan(tar_file("a.jpg", "1").substr(0, 513)).end.damage, IsEmpty()) << "unpadded";
}

TEST(TarScannerTest, DamageMakesOneRecordOfTheRestOfTheFile) {
  std::string file = two_samples();
  file[2048 + 5] = 'X';
  const Scan found = scan(file);
  EXPECT_THAT(found.starts, ElementsAre(0U, 2048U));
  EXPECT_EQ(found.end.end, file.size());
  EXPECT_EQ(found.end.damage, "the checksum of a header is wrong");
  EXPECT_THAT(scan(two_samples() + "garbage" + std::string(600, 'x')).end.damage,
              HasSubstr("checksum"));
  EXPECT_THAT(scan(std::string(3000, 'x')).end.damage, HasSubstr("this is no tar"));
  EXPECT_THAT(scan("short").end.damage,
              HasSubstr("in the middle of a header, which begins at byte 0"));
  EXPECT_THAT(scan(std::string(3000, 'x')).starts, ElementsAre(0U));
  // The extended header belongs to the record that fails.
  const std::string lie = pax_entry(pax_line("size", "7")) + tar_file("b.jpg", "x");
  EXPECT_THAT(scan(tar_file("a.jpg", "1") + lie).starts, ElementsAre(0U, 1024U));
}

TEST(TarScannerTest, AFileThatEndsEarlyIsDamagedWhereverThatIs) {
  const std::string file = gnu_long_name("a.jpg") + tar_file("x", std::string(600, 'a')) +
                           tar_file("b.jpg", std::string(512, 'b'));
  for (std::size_t bytes = 1; bytes < file.size(); ++bytes) {
    const Scan found = scan(file.substr(0, bytes));
    const bool whole = bytes >= 512U * 3 + 600 && bytes <= 512U * 5;
    EXPECT_EQ(found.end.damage.empty(), whole) << bytes;
    EXPECT_EQ(found.starts.front(), 0U);
    EXPECT_EQ(found.end.end, bytes);
  }
  EXPECT_THAT(scan(file.substr(0, file.size() - 1)).end.damage,
              HasSubstr("member \"b.jpg\" should end at byte 3584, and the file has 3583"));
}

TEST(TarScannerTest, AMemberOutsideOfSamplesThatEndsEarlySpoilsNone) {
  const Scan found =
      scan(tar_file("a.jpg", "1") + tar_file("README", std::string(600, 'x')).substr(0, 1000));
  EXPECT_THAT(found.starts, ElementsAre(0U, 1024U));
  EXPECT_THAT(found.end.damage, HasSubstr("member \"README\""));
}

TEST(TarScannerTest, AGlobalHeaderThatEndsEarlyIsDamage) {
  const std::string global = pax_entry(pax_line("comment", "x"), 'g');
  const Scan found = scan(tar_file("a.jpg", "1") + global.substr(0, 512));
  EXPECT_THAT(found.starts, ElementsAre(0U, 1024U));
  EXPECT_EQ(found.end.end, 1536U);
}

TEST(TarScannerTest, AMemberThatClaimsMoreThanTheFileIsDamage) {
  const std::string huge = std::string("\x80\0\0\0\x3f\xff\xff\xff\0\0\0\0", 12);
  const Scan found = scan(tar_entry({.name = "a.jpg", .size_field = huge}) + two_samples(), 1000);
  EXPECT_THAT(found.starts, ElementsAre(0U));
  EXPECT_THAT(found.end.damage, HasSubstr("member \"a.jpg\" should end at byte 46116860141"));
}

TEST(TarTest, ExtensionsBecomeFields) {
  const std::vector<std::string> records = records_of(two_samples());
  TarOptions options;
  options.fields = {{"image", "png;JPG"}, {"label", ".cls"}};
  options.key = true;
  const auto decoder = make_tar_decoder(options, {});
  EXPECT_EQ(decoder->spec().text(), "{__key__: string[], image: bytes[], label: i64[]}");
  Result<Sample> sample = decode(*decoder, records[0]);
  ASSERT_TRUE(sample.ok()) << sample.failure().message;
  EXPECT_EQ((*sample)["image"].text(), "pixels of a");
  EXPECT_EQ((*sample)["label"].item<std::int64_t>(), 3);
  EXPECT_EQ((*sample)["__key__"].text(), "a");
}

TEST(TarTest, TheFirstExtensionThatIsThereCounts) {
  const std::string both = tar_file("a.png", "png") + tar_file("a.JPG", "jpg");
  EXPECT_EQ((*decode(*decoder_of({{"x", "jpg;png"}}), both))["x"].text(), "jpg");
  EXPECT_EQ((*decode(*decoder_of({{"x", "png;jpg"}}), both))["x"].text(), "png");
  EXPECT_EQ((*decode(*decoder_of({{"x", "webp;jpg;png"}}), both))["x"].text(), "jpg");
}

TEST(TarTest, FieldsAreViewsOfTheRecord) {
  const std::string record = tar_file("a.jpg", "pixels");
  const auto decoder = decoder_of({{"image", "jpg"}});
  EXPECT_TRUE(decoder->lends());
  const auto owner = std::make_shared<const std::string>(record);
  Scratch scratch;
  const ScratchBlock block(decoder->spec(), 1, scratch);
  ASSERT_TRUE(decoder->decode({*owner, owner}, block.view(), 0, scratch).ok());
  EXPECT_EQ(block.view().columns[0].tensors[0].text().data(), owner->data() + 512);
  EXPECT_EQ(owner.use_count(), 2);
}

TEST(TarTest, WithoutFieldsThoseOfTheFirstSamplesAreTaken) {
  std::string file;
  for (const char* key : {"a", "b", "c"}) {
    file += tar_file(fmt::format("{}.jpg", key), "x") + tar_file(fmt::format("{}.CLS", key), "1") +
            tar_file(fmt::format("{}.seg.png", key), "x") +
            tar_file(fmt::format("{}.meta.json", key), "{}");
    if (*key != 'b') file += tar_file(fmt::format("{}.txt", key), "not all have it");
  }
  FirstRecords first{.file = "x.tar", .preface = {}, .records = records_of(file)};
  TarOptions options;
  EXPECT_EQ(make_tar_decoder(options, first)->spec().text(),
            "{cls: i64[], jpg: bytes[], meta.json: string[], seg.png: bytes[]}");
  options.dtypes = {{"cls", Dtype::u8}, {"meta.json", Dtype::bytes}};
  EXPECT_EQ(make_tar_decoder(options, first)->spec().text(),
            "{cls: u8[], jpg: bytes[], meta.json: bytes[], seg.png: bytes[]}");
  first.records.push_back(tar_file("d.webp", "x"));
  EXPECT_THAT([&] { make_tar_decoder({}, first); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("the first 4 samples of x.tar have no extension in common")));
}

TEST(TarTest, WhatCannotBeInferredIsRefused) {
  EXPECT_THAT([] { make_tar_decoder({}, {.file = "x.tar", .preface = {}, .records = {}}); },
              ThrowsMessage<ConfigError>(HasSubstr("from_tar: x.tar has no sample from which")));
  EXPECT_THAT(
      [] { make_tar_decoder({}, {.file = "x.tar", .preface = {}, .records = {"nonsense"}}); },
      ThrowsMessage<ConfigError>(HasSubstr("ends in the middle of a header")));
}

TEST(TarTest, MistakesInTheOptionsAreRefused) {
  const auto refused = [](TarOptions options) {
    try {
      make_tar_decoder(options, {});
    } catch (const ConfigError& error) {
      return error.message();
    }
    return std::string("nothing");
  };
  TarOptions options;
  options.fields = {{"x", "jpg;;png"}};
  EXPECT_THAT(refused(options), HasSubstr("field \"x\" has an extension that is empty"));
  options.fields = {{"x", "a/b"}};
  EXPECT_THAT(refused(options), HasSubstr("holds a '/'"));
  options.fields = {{"x", "jpg;JPG"}};
  EXPECT_THAT(refused(options), HasSubstr("has the extension jpg twice"));
  options.fields = {{"x", "cls;txt"}};
  EXPECT_THAT(refused(options), HasSubstr("would be i64 as cls and string as txt"));
  options.fields = {{"x", "jpg"}, {"x", "png"}};
  EXPECT_THAT(refused(options), HasSubstr("\"x\" appears twice"));
  options.fields = {{"x", "jpg"}};
  options.dtypes = {{"y", Dtype::bytes}};
  EXPECT_THAT(refused(options), HasSubstr("field \"y\" has a dtype, and there is no such field"));
  options.dtypes = {{"x", Dtype::f16}};
  EXPECT_THAT(refused(options), HasSubstr("field \"x\" cannot be read as f16"));
}

TEST(TarTest, NumbersAreReadFromTextAndChecked) {
  const auto number = [](Dtype dtype, const std::string& text) {
    TarOptions options;
    options.fields = {{"x", "n"}};
    options.dtypes = {{"x", dtype}};
    return decode(*make_tar_decoder(options, {}), tar_file("a.n", text));
  };
  EXPECT_EQ((*number(Dtype::i64, " +12\r\n"))["x"].item<std::int64_t>(), 12);
  EXPECT_EQ((*number(Dtype::i8, "-128"))["x"].item<std::int8_t>(), -128);
  EXPECT_EQ((*number(Dtype::u64, "18446744073709551615"))["x"].item<std::uint64_t>(), UINT64_MAX);
  EXPECT_EQ((*number(Dtype::f32, "-1.5e2\n"))["x"].item<float>(), -150.0F);
  EXPECT_EQ((*number(Dtype::f64, "0.1"))["x"].item<double>(), 0.1);
  for (const std::string text :
       {"", " ", "1.5", "1 2", "0x10", "--1", "+-1", "256", "-1", "12x", "٣"})
    EXPECT_THAT(number(Dtype::u8, text).failure().message, StartsWith("member \"a.n\" is \""))
        << text;
  EXPECT_EQ(number(Dtype::i64, "cat\x01").failure().message,
            "member \"a.n\" is \"cat\\x01\", which is no i64");
  EXPECT_EQ(number(Dtype::i64, "cat").failure().where.field, "x");
  EXPECT_EQ(number(Dtype::string, "\xff").failure().message, "member \"a.n\" is not UTF-8");
  EXPECT_EQ((*number(Dtype::bytes, "\xff"))["x"].text(), "\xff");
  EXPECT_EQ((*number(Dtype::string, ""))["x"].text(), "");
}

TEST(TarTest, WhatMustNotBeReadFailsAndIsNamed) {
  const std::string good = tar_file("a.jpg", "x");
  const auto failure = [&](const std::string& more) {
    return failure_of(good + more, {{"x", "jpg"}});
  };
  for (const char type : {'1', '2'})
    EXPECT_THAT(failure(tar_entry({.name = "a.cls", .type = type})),
                testing::MatchesRegex("member \"a.cls\" is a (hard|symbolic) link, which is not "
                                      "read"));
  for (const char type : {'3', '4', '6', 'S', '?'})
    EXPECT_THAT(failure(tar_entry({.name = "a.cls", .type = type})), HasSubstr("\"a.cls\" is "));
  EXPECT_EQ(failure_of(tar_file("../a.jpg", "x"), {{"x", "jpg"}}),
            "member \"../a.jpg\" has an unsafe name");
  EXPECT_EQ(failure_of(tar_file("/a.jpg", "x"), {{"x", "jpg"}}),
            "member \"/a.jpg\" has an unsafe name");
  // Also if no extension makes a field of it.
  EXPECT_THAT(records_of(good + tar_file("../etc/passwd", "x")).size(), 2U);
  EXPECT_EQ(failure_of(tar_file("../etc/passwd", "x"), {{"x", "jpg"}}),
            "member \"../etc/passwd\" has an unsafe name");
}

TEST(TarTest, MissingAndDuplicatedMembersFail) {
  const std::string good = tar_file("a.jpg", "x");
  EXPECT_EQ(failure_of(good, {{"x", "png;webp"}}),
            "sample \"a\" has no member with the extension png or webp");
  EXPECT_EQ(failure_of(good + tar_file("a.JPG", "y"), {{"x", "jpg"}}),
            "sample \"a\" has two members with the extension jpg");
  EXPECT_EQ(failure_of(good + tar_file("a.x", "y") + tar_file("a.x", "y"), {{"x", "jpg"}}),
            "no failure");
}

TEST(TarTest, ARecordThatIsNotASampleFails) {
  const std::vector<std::pair<std::string, std::string>> fields = {{"x", "jpg"}};
  EXPECT_EQ(failure_of("", fields), "the sample has no members");
  EXPECT_EQ(failure_of(std::string(1024, '\0'), fields), "the sample has no members");
  EXPECT_EQ(failure_of(std::string(512, 'x'), fields),
            "the checksum of a header is wrong, at byte 0 of the sample");
  const std::string good = tar_file("a.jpg", "pixels");
  EXPECT_EQ(failure_of(good + tar_file("b.jpg", "x"), fields),
            "member \"b.jpg\" is not of sample \"a\"");
  EXPECT_EQ(failure_of(good + "x", fields),
            "the sample ends in the middle of a header, at its byte 1024");
  EXPECT_EQ(failure_of(good.substr(0, 515), fields),
            "member \"a.jpg\" should have 6 bytes, and the sample ends after 3 of them");
  EXPECT_EQ(failure_of(pax_entry(pax_line("path", "a.jpg")).substr(0, 520), fields),
            "an extended header should have 14 bytes, and the sample ends after 8 of them");
  EXPECT_EQ(failure_of(pax_entry("nonsense") + good, fields), "an extended header is damaged");
}

TEST(TarTest, EveryRecordOfAScanIsASampleWithLongNamesToo) {
  std::string file;
  for (int i = 0; i < 3; ++i) {
    const std::string key = fmt::format("{}{}", std::string(150, 'k'), i);
    file += gnu_long_name(key + ".jpg") + tar_file("k", "pixels");
    file +=
        pax_entry(pax_line("mtime", "1.5") + pax_line("path", key + ".cls")) + tar_file("k", "1");
  }
  TarOptions options;
  options.key = true;
  const std::vector<std::string> records = records_of(file + tar_end());
  ASSERT_EQ(records.size(), 3U);
  const auto decoder = make_tar_decoder(options, {.file = "", .preface = {}, .records = records});
  for (std::size_t i = 0; i < 3; ++i) {
    Result<Sample> sample = decode(*decoder, records[i]);
    ASSERT_TRUE(sample.ok()) << sample.failure().message;
    EXPECT_EQ((*sample)["__key__"].text(), fmt::format("{}{}", std::string(150, 'k'), i));
  }
}

TEST(TarTest, AKeyThatIsNotUtf8FailsOnlyIfItIsAField) {
  const std::string record = tar_file("\xff.jpg", "x");
  TarOptions options;
  options.fields = {{"x", "jpg"}};
  EXPECT_TRUE(decode(*make_tar_decoder(options, {}), record).ok());
  options.key = true;
  EXPECT_EQ(decode(*make_tar_decoder(options, {}), record).failure().message,
            "the name of sample \"\\xff\" is not UTF-8");
}

TEST(TarTest, WhatIsWrittenIsRead) {
  std::vector<std::string> names;
  for (const std::size_t bytes : {1, 99, 100, 101, 255, 256, 257, 300, 5000})
    names.push_back(std::string(bytes, 'n') + ".x");
  for (const std::size_t slash : {1, 50, 100, 155, 156, 200, 254})
    names.push_back(std::string(slash, 'p') + "/" + std::string(255 - slash, 'n') + ".x");
  names.push_back(std::string(120, 'p') + "/" + std::string(30, 'n') + ".x");
  names.emplace_back("\xe4\xbd\xa0.x");
  std::string file;
  for (std::size_t i = 0; i < names.size(); ++i)
    append_tar_member(file, names[i], std::string(i * 100, 'c'));
  append_tar_end(file);
  const std::vector<std::string> records = records_of(file);
  ASSERT_EQ(records.size(), names.size());
  TarOptions options;
  options.fields = {{"x", "x"}};
  options.key = true;
  const auto decoder = make_tar_decoder(options, {});
  for (std::size_t i = 0; i < names.size(); ++i) {
    Result<Sample> sample = decode(*decoder, records[i]);
    ASSERT_TRUE(sample.ok()) << sample.failure().message;
    EXPECT_EQ(std::string((*sample)["__key__"].text()) + ".x", names[i]);
    EXPECT_EQ((*sample)["x"].text(), std::string(i * 100, 'c'));
  }
}

TEST(TarTest, OptionsThatChangeValuesChangeTheDigest) {
  const auto digest = [](const TarOptions& options) {
    Digest sum;
    make_tar_decoder(options, {})->identify(sum);
    return sum.value();
  };
  TarOptions options;
  options.fields = {{"x", "jpg"}};
  const std::uint64_t plain = digest(options);
  options.key = true;
  EXPECT_NE(digest(options), plain);
  options.key = false;
  options.dtypes = {{"x", Dtype::string}};
  EXPECT_NE(digest(options), plain);
  options.dtypes = {};
  options.fields = {{"x", "jpg;png"}};
  EXPECT_NE(digest(options), plain);
}

}  // namespace
}  // namespace penstock
