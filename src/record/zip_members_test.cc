#include "record/zip_members.h"

#include <gmock/gmock.h>

#include <cstring>

#include "record/zip_archives_for_tests.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using testing::zip;
using testing::zip_part;
using testing::ZipPart;

ReadPart reader_of(const std::string& archive) {
  return [&archive](std::uint64_t offset, std::span<std::byte> out) -> Result<void> {
    if (offset > archive.size() || out.size() > archive.size() - offset)
      return Failure{"read outside of the archive"};
    if (!out.empty()) std::memcpy(out.data(), archive.data() + offset, out.size());
    return {};
  };
}

Result<std::vector<ZipMember>> members_of(const std::string& archive) {
  return list_zip_members(reader_of(archive), archive.size());
}

/// The content of each member, or why it cannot be read.
std::vector<std::string> contents_of(const std::string& archive) {
  const auto members = members_of(archive);
  if (!members) return {members.failure().message};
  std::vector<std::string> contents;
  for (const ZipMember& member : *members) {
    auto bytes = unpack_zip_member(reader_of(archive), member);
    contents.push_back(
        bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
              : bytes.failure().message);
  }
  return contents;
}

std::string long_text() {
  std::string text;
  for (std::uint64_t i = 0; i < 200'000; ++i) text += std::to_string(i * i % 1013);
  return text;
}

TEST(ZipMembersTest, StoredAndDeflatedMembersAreFound) {
  const std::vector<ZipPart> parts{zip_part("a.npy", "one"), zip_part("folder/", ""),
                                   zip_part("b", long_text(), true), zip_part("empty", ""),
                                   zip_part("packed", "", true)};
  for (const bool zip64 : {false, true}) {
    const std::string archive = zip(parts, zip64, "a comment with PK\x05\x06 in it");
    EXPECT_THAT(contents_of(archive), ::testing::ElementsAre("one", long_text(), "", ""));
    const auto members = *members_of(archive);
    EXPECT_EQ(members[0].name, "a.npy");
    EXPECT_FALSE(members[0].deflated);
    EXPECT_EQ(archive.substr(members[0].at, 3), "one");
    EXPECT_EQ(members[1].bytes, long_text().size());
  }
  EXPECT_THAT(contents_of(zip({})), ::testing::IsEmpty());
}

TEST(ZipMembersTest, LiesAboutMembersAreRefused) {
  const auto refusal = [](const ZipPart& part) { return contents_of(zip({part})).at(0); };
  const auto with = [](auto change, bool packed = true) {
    ZipPart part = zip_part("a", long_text(), packed);
    change(part);
    return part;
  };
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.flags = 1; })), HasSubstr("encrypted"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.method = 12; })), HasSubstr("method 12"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.crc ^= 1U; })), HasSubstr("checksum"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.crc ^= 1U; }, false)), HasSubstr("checksum"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.bytes += 1; })), HasSubstr("unpack"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.bytes -= 1; })), HasSubstr("unpack"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.bytes = 1; }, false)), HasSubstr("two sizes"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.bytes = 0xFFFF'FFF0; })),
              HasSubstr("claims to be"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.local_name = "b"; })),
              HasSubstr("not where the directory says"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.stored.resize(part.stored.size() / 2); })),
              HasSubstr("cannot be unpacked"));
  EXPECT_THAT(refusal(with([](ZipPart& part) { part.stored[100] = '\xFF'; })),
              HasSubstr("damaged"));
  EXPECT_THAT(refusal(zip_part("\xFF\xFE", "x")), HasSubstr("not a name"));
  EXPECT_THAT(contents_of(zip({zip_part("a", "1"), zip_part("a", "2")})).at(0),
              HasSubstr("two members"));
}

TEST(ZipMembersTest, ATruncatedArchiveIsRefused) {
  for (const bool zip64 : {false, true}) {
    const std::string archive = zip({zip_part("a", "one"), zip_part("b", "two", true)}, zip64);
    for (std::size_t bytes = 0; bytes < archive.size(); ++bytes)
      EXPECT_FALSE(members_of(archive.substr(0, bytes))) << bytes;
  }
}

TEST(ZipMembersTest, AnyChangedByteIsHarmless) {
  for (const bool zip64 : {false, true}) {
    const std::string archive =
        zip({zip_part("a", "one"), zip_part("b", std::string(1000, 'x'), true)}, zip64);
    for (std::size_t at = 0; at < archive.size(); ++at) {
      for (const char change : {'\x01', '\x80', '\xFF'}) {
        std::string changed = archive;
        changed[at] = static_cast<char>(changed[at] ^ change);
        for (const std::string& content : contents_of(changed))
          EXPECT_THAT(content, ::testing::Not(HasSubstr("read outside")));
      }
    }
  }
}

}  // namespace
}  // namespace penstock
