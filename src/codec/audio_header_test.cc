#include "codec/audio_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/audio_for_tests.h"

namespace penstock {
namespace {

using made::AudioBytes;
using testing::HasSubstr;

std::string refusal(const AudioBytes& file) {
  const auto format = check_audio_header(made::audio_bytes(file));
  return format ? "accepted" : format.failure().message;
}
AudioBytes with(AudioBytes file, std::size_t at, std::initializer_list<std::uint8_t> bytes) {
  std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(at));
  return file;
}
AudioBytes of_text(std::string_view text) {
  return {text.begin(), text.end()};
}

constexpr std::size_t kWavTag = 20;
constexpr std::size_t kWavChannels = 22;
constexpr std::size_t kWavRate = 24;
constexpr std::size_t kWavBits = 34;
constexpr std::size_t kWavDataSize = 40;

TEST(AudioHeaderTest, WavAndAiffAreFoundByTheirContent) {
  EXPECT_EQ(*check_audio_header(made::audio_bytes(made::wav())), AudioFormat::wav);
  EXPECT_EQ(*check_audio_header(made::audio_bytes(made::aiff())), AudioFormat::aiff);
  EXPECT_THAT(refusal(of_text("hello, world")), HasSubstr("begins with \"hello, w\""));
  EXPECT_THAT(refusal({}), HasSubstr("empty"));
  EXPECT_THAT(refusal(of_text("RIFF....AVI LIST")), HasSubstr("not a recording"));
}

TEST(AudioHeaderTest, EveryPrefixOfAWavIsRefused) {
  const AudioBytes file = made::wav({.frames = 20});
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes)
    EXPECT_NE(refusal({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes)}),
              "accepted")
        << bytes;
  EXPECT_EQ(refusal(file), "accepted");
}

TEST(AudioHeaderTest, EveryPrefixOfAnAiffIsRefused) {
  const AudioBytes file = made::aiff({.frames = 20});
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes)
    EXPECT_NE(refusal({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes)}),
              "accepted")
        << bytes;
  EXPECT_EQ(refusal(file), "accepted");
}

TEST(AudioHeaderTest, ATruncatedFileSaysHowManyFramesAreThere) {
  AudioBytes file = made::wav({.frames = 100, .channels = 2});
  file.resize(file.size() - 4 * 30);
  EXPECT_EQ(refusal(file), "the WAV is truncated: 70 of 100 frames are there");
  AudioBytes other = made::aiff({.frames = 100, .channels = 2});
  other.resize(other.size() - 4 * 30);
  EXPECT_EQ(refusal(other), "the AIFF is truncated: 70 of 100 frames are there");
}

TEST(AudioHeaderTest, AWavOfUnknownSizeIsAccepted) {
  const AudioBytes file = made::wav();
  EXPECT_EQ(refusal(with(file, kWavDataSize, {0xff, 0xff, 0xff, 0xff})), "accepted");
  EXPECT_EQ(refusal(with(file, kWavDataSize, {0x00, 0xf0, 0xff, 0x7f})), "accepted");
  EXPECT_THAT(refusal(with(file, kWavDataSize, {0x00, 0xf0, 0xff, 0x6f})), HasSubstr("truncated"));
}

TEST(AudioHeaderTest, ImpossibleNumbersAreRefused) {
  const AudioBytes file = made::wav();
  EXPECT_THAT(refusal(with(file, kWavChannels, {0, 0})), HasSubstr("no channels"));
  EXPECT_THAT(refusal(with(file, kWavRate, {0, 0, 0, 0})), HasSubstr("0 Hz"));
  EXPECT_THAT(refusal(with(file, kWavBits, {0, 0})), HasSubstr("0 bits"));
  EXPECT_THAT(refusal(with(file, kWavTag, {0x11, 0})), HasSubstr("encoding 17"));
  EXPECT_THAT(refusal(with(made::aiff(), 20, {0, 0})), HasSubstr("no channels"));
}

TEST(AudioHeaderTest, ALongerHeaderAndOtherChunksAreRead) {
  const AudioBytes sound(64);
  EXPECT_EQ(refusal(made::wav_of({.extensible = true, .other_chunk = true}, sound)), "accepted");
  EXPECT_THAT(refusal(made::wav_of({.tag = 2, .extensible = true}, sound)),
              HasSubstr("encoding 2"));
}

/// The only page of an Ogg file with this packet, at position 100.
AudioBytes ogg_page(std::string_view packet) {
  AudioBytes page(27);
  std::ranges::copy(std::string_view("OggS"), page.begin());
  page[5] = 2 | 4;  // the first and the last
  page[6] = 100;
  page[26] = 1;
  page.push_back(static_cast<std::uint8_t>(packet.size()));
  made::put_text(page, packet);
  made::sign_ogg_page(page, 0);
  return page;
}

TEST(AudioHeaderTest, OfOggOnlyVorbisAndOpusAreKnown) {
  EXPECT_EQ(refusal(ogg_page("\x01vorbis")), "accepted");
  EXPECT_EQ(refusal(ogg_page("OpusHead")), "accepted");
  EXPECT_THAT(refusal(ogg_page("Speex   ")), HasSubstr("neither Vorbis nor Opus"));
  EXPECT_THAT(refusal(of_text("OggS")), HasSubstr("ends within its header"));
}

TEST(AudioHeaderTest, AnOggWithoutItsLastPageIsTruncated) {
  AudioBytes page = ogg_page("\x01vorbis");
  page[5] = 2;
  made::sign_ogg_page(page, 0);
  EXPECT_EQ(refusal(page), "the Ogg Vorbis is truncated: its first 100 frames are there");
}

TEST(AudioHeaderTest, AFlacWithoutARateIsRefused) {
  AudioBytes file(4 + 4 + 34);
  std::ranges::copy(std::string_view("fLaC"), file.begin());
  EXPECT_THAT(refusal(file), HasSubstr("0 Hz"));
  file[4] = 4;
  EXPECT_THAT(refusal(file), HasSubstr("does not begin with its format"));
  file.resize(30);
  EXPECT_THAT(refusal(file), HasSubstr("ends within its header"));
}

TEST(AudioHeaderTest, EveryFormatHasAnExtension) {
  EXPECT_THAT(audio_extensions(), testing::IsSupersetOf({"wav", "flac", "ogg", "opus", "aiff"}));
}

}  // namespace
}  // namespace penstock
