#include "record/decompressor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/error.h"
#include "record/compressed_for_tests.h"

namespace penstock {
namespace {

using for_tests::stored_gzip;
using for_tests::stored_zlib;
using for_tests::stored_zstd;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::string_view kHello = "hello hello hello hello\n";

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  return bytes;
}

/// `kHello` as gzip 1.12, Python's zlib and zstd 1.5.4 compress it.
std::string hello_of(Compression kind) {
  switch (kind) {
    case Compression::gzip:
      return from_hex("1f8b0800000000000203cb48cdc9c957c84027b9000088590b18000000");
    case Compression::zlib:
      return from_hex("78dacb48cdc9c957c84027b90070be08bb");
    case Compression::zstd:
      return from_hex("28b52ffd24186d00003868656c6c6f200a0100994b11a87c2ea8");
    case Compression::none:
      break;
  }
  return std::string(kHello);
}

std::string stored_of(Compression kind, std::string_view data) {
  switch (kind) {
    case Compression::gzip:
      return stored_gzip(data);
    case Compression::zlib:
      return stored_zlib(data);
    case Compression::zstd:
      return stored_zstd(data);
    case Compression::none:
      break;
  }
  return std::string(data);
}

std::vector<Compression> kinds() {
  std::vector<Compression> all;
  for (const Compression kind :
       {Compression::none, Compression::gzip, Compression::zlib, Compression::zstd})
    if (can_decompress(kind)) all.push_back(kind);
  return all;
}

/// Decompresses in pieces of these sizes.
Result<std::string> decompressed(Compression kind, std::string_view data,
                                 std::size_t in_bytes = 1U << 20U,
                                 std::size_t out_bytes = 1U << 20U) {
  const auto decompressor = Decompressor::make(kind);
  std::string text;
  std::string room(out_bytes, '\0');
  while (true) {
    const std::string_view piece = data.substr(0, in_bytes);
    auto ran =
        decompressor->run(std::as_bytes(std::span(piece)), std::as_writable_bytes(std::span(room)));
    if (!ran.ok()) return ran.failure();
    EXPECT_LE(ran->read, piece.size());
    EXPECT_LE(ran->written, room.size());
    text.append(room, 0, ran->written);
    data.remove_prefix(ran->read);
    if (ran->written == room.size()) continue;
    EXPECT_EQ(ran->read, piece.size()) << "one of them must be used up";
    if (data.empty()) break;
  }
  if (Result<void> end = decompressor->finish(); !end.ok()) return end.failure();
  return text;
}

std::string failure_of(Compression kind, std::string_view data, std::size_t in_bytes = 1U << 20U) {
  const Result<std::string> text = decompressed(kind, data, in_bytes);
  return text.ok() ? "no failure" : text.failure().message;
}

TEST(DecompressorTest, WhatTheirToolsWroteIsReadInPiecesOfAnySize) {
  for (const Compression kind : kinds())
    for (const std::size_t in_bytes : {1, 2, 7, 1000})
      for (const std::size_t out_bytes : {1, 3, 24, 25, 1000})
        EXPECT_EQ(*decompressed(kind, hello_of(kind), in_bytes, out_bytes), kHello)
            << compression_word(kind) << " " << in_bytes << " " << out_bytes;
}

TEST(DecompressorTest, FilesOfManyBlocksAreReadInPiecesOfAnySize) {
  std::string data;
  while (data.size() < 400'000) data += fmt::format("{} ", data.size());
  for (const Compression kind : kinds())
    for (const std::size_t in_bytes : {1000, 131'072, 1'000'000})
      for (const std::size_t out_bytes : {999, 131'072, 1'000'000})
        EXPECT_EQ(*decompressed(kind, stored_of(kind, data), in_bytes, out_bytes), data)
            << compression_word(kind);
}

TEST(DecompressorTest, SeveralMembersFollowEachOther) {
  for (const Compression kind : kinds()) {
    if (kind == Compression::zlib || kind == Compression::none) continue;
    const std::string data = hello_of(kind) + stored_of(kind, "") + stored_of(kind, "and more");
    for (const std::size_t bytes : {1, 5, 1000})
      EXPECT_EQ(*decompressed(kind, data, bytes, bytes), std::string(kHello).append("and more"));
  }
}

TEST(DecompressorTest, ZerosMayFollowGzipAndStandBetweenItsMembers) {
  const std::string data =
      stored_gzip("a") + std::string(1000, '\0') + stored_gzip("b") + std::string(512, '\0');
  for (const std::size_t bytes : {1, 100, 10'000})
    EXPECT_EQ(*decompressed(Compression::gzip, data, bytes, bytes), "ab");
}

TEST(DecompressorTest, OtherBytesAfterTheEndAreDamage) {
  EXPECT_EQ(failure_of(Compression::gzip, stored_gzip("abc") + "garbage"),
            "the gzip data is damaged at byte 28 of the file: incorrect header check");
  EXPECT_THAT(failure_of(Compression::zlib, stored_zlib("abc") + stored_zlib("abc")),
              HasSubstr("more bytes follow its end"));
  if (can_decompress(Compression::zstd)) {
    EXPECT_THAT(failure_of(Compression::zstd, stored_zstd("abc") + "garbage"),
                HasSubstr("the zstd data is damaged at byte 12 of the file"));
  }
}

TEST(DecompressorTest, AFileThatEndsInTheMiddleFailsWhereverThatIs) {
  for (const Compression kind : kinds()) {
    if (kind == Compression::none) continue;
    for (const std::string& data : {hello_of(kind), stored_of(kind, "abc")})
      for (std::size_t bytes = 0; bytes < data.size(); ++bytes)
        EXPECT_THAT(failure_of(kind, data.substr(0, bytes), 1 + bytes % 3),
                    HasSubstr(bytes == 0 ? "the file is empty" : "ends in the middle"))
            << compression_word(kind) << " " << bytes;
  }
}

TEST(DecompressorTest, ADamagedByteOfGzipAndZlibIsAFailureAndNamesItsPlace) {
  std::string gzip = stored_gzip("some text");
  gzip[18] = static_cast<char>(gzip[18] ^ 1);
  EXPECT_EQ(failure_of(Compression::gzip, gzip),
            "the gzip data is damaged at byte 28 of the file: incorrect data check");
  std::string zlib = stored_zlib("some text");
  zlib[10] = static_cast<char>(zlib[10] ^ 1);
  EXPECT_THAT(failure_of(Compression::zlib, zlib), HasSubstr("incorrect data check"));
  EXPECT_THAT(failure_of(Compression::zlib, from_hex("78bb000000010000")),
              HasSubstr("it needs a dictionary"));
}

TEST(DecompressorTest, AWindowOfZstdThatNeedsMuchMemoryIsRefused) {
  if (!can_decompress(Compression::zstd)) GTEST_SKIP() << "this build has no zstd";
  std::string data = stored_zstd("abc");
  data[5] = static_cast<char>((28 - 10) << 3);
  EXPECT_THAT(failure_of(Compression::zstd, data), HasSubstr("a window of more than 128 MiB"));
}

TEST(DecompressorTest, AFrameOfZstdOfAnotherSizeThanItSaysIsDamagedInPiecesOfAnySize) {
  if (!can_decompress(Compression::zstd)) GTEST_SKIP() << "this build has no zstd";
  // A content of 65,632 bytes is stated; the only block is empty.
  const std::string data = from_hex("28b52ffd4060ff07010000");
  for (const std::size_t in : {1U, 8U, 100U})
    for (const std::size_t out : {41U, 65536U})
      EXPECT_FALSE(decompressed(Compression::zstd, data, in, out).ok()) << in << " " << out;
}

TEST(DecompressorTest, FramesOfZstdToSkipAreSkipped) {
  if (!can_decompress(Compression::zstd)) GTEST_SKIP() << "this build has no zstd";
  const std::string skipped = std::string("\x53\x2a\x4d\x18\x05\0\0\0", 8) + "abcde";
  const std::string data = skipped + stored_zstd("abc") + skipped;
  EXPECT_EQ(compression_of(data, false), Compression::zstd);
  EXPECT_EQ(*decompressed(Compression::zstd, data, 3, 1), "abc");
}

TEST(DecompressorTest, WithoutZstdSuchAFileIsRefused) {
  if (can_decompress(Compression::zstd)) GTEST_SKIP() << "this build has zstd";
  EXPECT_THAT([] { Decompressor::make(Compression::zstd); },
              ThrowsMessage<ConfigError>(HasSubstr("built without it")));
}

TEST(DecompressorTest, TheFirstBytesTellTheCompression) {
  for (const Compression kind : kinds())
    EXPECT_EQ(compression_of(hello_of(kind).substr(0, 4), true), kind) << compression_word(kind);
  EXPECT_EQ(compression_of(hello_of(Compression::zlib), false), Compression::none);
  for (const std::string_view text : {"", "\x1f\x8b", "\x28\xb5\x2f", "x"})
    EXPECT_EQ(compression_of(text, true), Compression::none);
}

}  // namespace
}  // namespace penstock
