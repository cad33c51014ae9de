#include "record/tar_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/tar_for_tests.h"
#include "record/unsafe_path.h"

namespace penstock {
namespace {

using for_tests::gnu_long_name;
using for_tests::pax_entry;
using for_tests::pax_line;
using for_tests::tar_entry;
using for_tests::tar_file;
using testing::HasSubstr;

/// The first member of `archive`, or why there is none.
struct FirstMember {
  std::string name = {};
  std::uint64_t content_bytes = 0;
  bool ignored = false;
  std::string refused = {};
  std::string failure = {};
};

FirstMember first_member(const std::string& archive) {
  TarHeaders headers;
  for (std::string_view left = archive; left.size() >= kTarBlock;) {
    Result<TarHeaders::Next> next = headers.read(left.substr(0, kTarBlock));
    if (!next.ok()) return {.failure = next.failure().message};
    left.remove_prefix(kTarBlock);
    if (*next == TarHeaders::Next::member) {
      const TarMember& found = headers.member();
      return {std::string(found.name),
              found.content_bytes,
              found.ignored,
              std::string(found.refused),
              {}};
    }
    if (*next == TarHeaders::Next::header) continue;
    const auto bytes = static_cast<std::size_t>(headers.extension_bytes());
    if (Result<void> extended = headers.extend(left.substr(0, bytes)); !extended.ok())
      return {.failure = extended.failure().message};
    left.remove_prefix(static_cast<std::size_t>(tar_padded(bytes)));
  }
  return {.failure = "no member"};
}

TEST(TarHeaderTest, EveryFormHasItsNamesAndSizes) {
  const FirstMember ustar =
      first_member(tar_entry({.name = "b/c.txt", .content = "hello", .prefix = "some/folder"}));
  EXPECT_EQ(ustar.name, "some/folder/b/c.txt");
  EXPECT_EQ(ustar.content_bytes, 5U);
  const FirstMember old =
      first_member(tar_entry({.name = "a.txt", .content = "hello", .type = '\0', .magic = ""}));
  EXPECT_EQ(old.name, "a.txt");
  EXPECT_FALSE(old.ignored);
  EXPECT_TRUE(first_member(tar_entry({.name = "a/", .type = '\0', .magic = ""})).ignored);
  // GNU tar keeps times where others have the prefix.
  EXPECT_EQ(first_member(tar_entry({.name = "a.txt", .prefix = "013", .magic = "ustar  "})).name,
            "a.txt");
  const std::string all_of_it(100, 'n');
  EXPECT_EQ(first_member(tar_entry({.name = all_of_it, .prefix = std::string(155, 'p')})).name,
            std::string(155, 'p') + "/" + all_of_it);
  const std::string long_name(300, 'l');
  EXPECT_EQ(first_member(gnu_long_name(long_name) + tar_file("lll", "")).name, long_name);
  EXPECT_EQ(first_member(pax_entry(pax_line("path", long_name)) + tar_file("lll", "")).name,
            long_name);
}

TEST(TarHeaderTest, SizesAreOctalOrOfGnuTarOrInTheExtendedHeader) {
  const auto of_field = [](const std::string& field) {
    return first_member(tar_entry({.name = "a", .size_field = field}));
  };
  EXPECT_EQ(of_field("00000001234 ").content_bytes, 01234U);
  EXPECT_EQ(of_field("       1234 ").content_bytes, 01234U);
  EXPECT_EQ(of_field("777777777777").content_bytes, 0777777777777U);
  EXPECT_EQ(of_field(std::string("\x80\0\0\0\0\0\0\2\0\0\0\1", 12)).content_bytes, 0x2'0000'0001U);
  for (const std::string& field :
       {std::string("12345678"), std::string("-1"), std::string("x"), std::string(12, '\xff'),
        std::string("\x80\0\0\0\x7f\0\0\0\0\0\0\0", 12)})
    EXPECT_EQ(of_field(field).failure, "the size in a header is no size") << field;
  const std::uint64_t big = std::uint64_t{1} << 40U;
  EXPECT_EQ(first_member(pax_entry(pax_line("size", fmt::format("{}", big))) + tar_file("a", ""))
                .content_bytes,
            big);
}

TEST(TarHeaderTest, LiesAboutASizeAreDamage) {
  EXPECT_THAT(first_member(pax_entry(pax_line("size", "3")) + tar_file("a", "hello")).failure,
              HasSubstr("\"a\" has 5 bytes by its header and 3 bytes by its extended header"));
  for (const std::string value :
       {"-1", "", "12x", "0x10", "99999999999999999999999", "1e3", "9223372036854775807"})
    EXPECT_THAT(first_member(pax_entry(pax_line("size", value)) + tar_file("a", "")).failure,
                HasSubstr("in an extended header is no size"))
        << value;
}

TEST(TarHeaderTest, DamagedExtendedHeadersAreFailures) {
  for (const std::string lines :
       {"x", "5", "99 a=b\n", "6 a=b\nx", "5 ab\n", "6 abc\n", "5 =b\n", "0 a=b\n", "4 a=\n",
        "-6 a=b\n", "18446744073709551616 a=b\n", "6 a=b"})
    EXPECT_EQ(first_member(pax_entry(lines) + tar_file("a", "")).failure,
              "an extended header is damaged")
        << lines;
  EXPECT_EQ(first_member(pax_entry("6 a=b\n") + tar_file("a", "")).name, "a");
  EXPECT_THAT(
      first_member(tar_entry({.name = "x", .type = 'x', .size_field = "77777777777"})).failure,
      HasSubstr("longer than 1048576 bytes"));
  EXPECT_THAT(first_member(pax_entry("") + std::string(512, '\0')).failure,
              HasSubstr("has no member after it"));
}

TEST(TarHeaderTest, HeadersOfOneMemberAreBounded) {
  std::string many;
  for (int i = 0; i < 3000; ++i) many += pax_entry("6 a=b\n");
  EXPECT_EQ(first_member(many + tar_file("a", "")).name, "a");
  for (int i = 0; i < 3000; ++i) many += pax_entry("6 a=b\n");
  EXPECT_THAT(first_member(many + tar_file("a", "")).failure,
              HasSubstr("the headers of a member are longer than 4194304 bytes"));
}

TEST(TarHeaderTest, WhatAGlobalHeaderMayNotSay) {
  EXPECT_EQ(first_member(pax_entry(pax_line("comment", "x"), 'g') + tar_file("a", "")).name, "a");
  EXPECT_THAT(first_member(pax_entry(pax_line("path", "x"), 'g') + tar_file("a", "")).failure,
              HasSubstr("a global header gives all members after it the same path"));
  EXPECT_THAT(first_member(pax_entry(pax_line("size", "1"), 'g') + tar_file("a", "")).failure,
              HasSubstr("the same size"));
}

TEST(TarHeaderTest, ExtendedHeadersBelongToOneMemberOnly) {
  const std::string file = pax_entry(pax_line("path", "long")) + tar_file("a", "");
  const std::string_view archive = file;
  TarHeaders headers;
  const auto read = [&headers](std::string_view block) { return *headers.read(block); };
  EXPECT_EQ(read(archive.substr(0, 512)), TarHeaders::Next::extension);
  ASSERT_TRUE(headers.extend(pax_line("path", "long")).ok());
  EXPECT_TRUE(headers.within());
  EXPECT_EQ(read(archive.substr(1024)), TarHeaders::Next::member);
  EXPECT_EQ(headers.member().name, "long");
  EXPECT_FALSE(headers.within());
  EXPECT_EQ(read(archive.substr(1024)), TarHeaders::Next::member);
  EXPECT_EQ(headers.member().name, "a");
}

TEST(TarHeaderTest, AnyChangedByteOfAHeaderIsNoticed) {
  const std::string archive = tar_file("a.txt", "");
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    std::string changed = archive;
    changed[i] = static_cast<char>(changed[i] + 1);
    if (i == 154 || i == 155) continue;  // after the digits of the checksum
    EXPECT_THAT(first_member(changed).failure, HasSubstr("checksum")) << i;
  }
}

TEST(TarHeaderTest, ChecksumsOfSignedBytesAreTaken) {
  std::string archive = tar_file("\xe4.txt", "");
  unsigned sum = static_cast<unsigned>(std::stoul(archive.substr(148, 6), nullptr, 8));
  archive.replace(148, 6, fmt::format("{:06o}", sum - 256));
  EXPECT_EQ(first_member(archive).name, "\xe4.txt");
}

TEST(TarHeaderTest, LinksDevicesPipesAndSparseFilesAreRefused) {
  const auto refused = [](char type) {
    return first_member(tar_entry({.name = "a", .type = type, .size_field = "00000000100"}));
  };
  EXPECT_EQ(refused('1').refused, "a hard link");
  EXPECT_EQ(refused('1').content_bytes, 0U);
  EXPECT_EQ(refused('2').refused, "a symbolic link");
  EXPECT_EQ(refused('3').refused, "a device");
  EXPECT_EQ(refused('4').refused, "a device");
  EXPECT_EQ(refused('6').refused, "a pipe");
  EXPECT_EQ(refused('S').refused, "a sparse file");
  EXPECT_EQ(refused('M').refused, "the rest of a file of another volume");
  EXPECT_EQ(refused('?').refused, "of an unknown type");
  EXPECT_EQ(refused('?').content_bytes, 64U);
  for (const char type : {'0', '7', '\0'}) EXPECT_EQ(refused(type).refused, "");
  for (const char type : {'5', 'D', 'V'}) EXPECT_TRUE(refused(type).ignored) << type;
  const FirstMember pax = first_member(
      pax_entry(pax_line("GNU.sparse.major", "1") + pax_line("GNU.sparse.name", "b/a.bin")) +
      tar_file("b/GNUSparseFile.1/a.bin", "x"));
  EXPECT_EQ(pax.refused, "a sparse file");
  EXPECT_EQ(pax.name, "b/a.bin");
}

TEST(TarHeaderTest, TheMapOfASparseFileIsPassedOver) {
  std::string header = tar_entry({.name = "a", .type = 'S', .magic = "ustar  "});
  header[482] = 1;
  for_tests::set_tar_checksum(header);
  std::string map(512, 'm');
  map[504] = 1;
  std::string last(512, 'm');
  last[504] = 0;
  TarHeaders headers;
  EXPECT_EQ(*headers.read(header), TarHeaders::Next::header);
  EXPECT_EQ(*headers.read(map), TarHeaders::Next::header);
  EXPECT_TRUE(headers.within());
  EXPECT_EQ(*headers.read(last), TarHeaders::Next::member);
  EXPECT_EQ(headers.member().refused, "a sparse file");
}

TEST(TarHeaderTest, NamesAreCutAtTheFirstDotOfTheirLastPart) {
  const auto cut = [](std::string_view name, std::string_view refused = "") {
    const auto found = tar_name_of({.name = name, .refused = refused});
    return found ? fmt::format("{}|{}", found->key, found->extension) : "nothing";
  };
  EXPECT_EQ(cut("a.jpg"), "a|jpg");
  EXPECT_EQ(cut("v1.0/a.seg.png"), "v1.0/a|seg.png");
  EXPECT_EQ(cut("./a.jpg"), "./a|jpg");
  EXPECT_EQ(cut("a/__b__.jpg"), "a/__b__|jpg");
  for (const std::string_view name :
       {"", "a", "a.", ".hidden", "b/.hidden.jpg", "._a.jpg", "v1.0/a", "__info__", "__a.b__"})
    EXPECT_EQ(cut(name), "nothing") << name;
  EXPECT_EQ(cut("a", "a link"), "a|");
  EXPECT_EQ(cut("../a"), "../a|");
  EXPECT_EQ(cut("/a.jpg"), "/a|jpg");
}

TEST(TarHeaderTest, UnsafeNamesAreAbsoluteOrLeadUpwards) {
  for (const std::string_view name : {"/a", "..", "../a", "a/../b", "a/..", "a//../b"})
    EXPECT_TRUE(is_unsafe_path(name)) << name;
  EXPECT_TRUE(is_unsafe_path(std::string_view("a\0.jpg", 6)));
  for (const std::string_view name : {"", "a", "..a", "a..", "a/...", "./a", "a/./b"})
    EXPECT_FALSE(is_unsafe_path(name)) << name;
}

}  // namespace
}  // namespace penstock
