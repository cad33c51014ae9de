#include "codec/audio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "codec/audio_for_tests.h"

namespace penstock {
namespace {

using made::AudioBytes;
using testing::HasSubstr;

#ifdef PENSTOCK_SNDFILE

using Frames = std::vector<float>;

Result<Frames> read(const AudioBytes& file, std::int64_t first = 0, std::int64_t frames = -1) {
  auto opened = AudioFile::open(made::audio_bytes(file));
  if (!opened) return std::move(opened.failure());
  if (frames < 0) frames = opened->info().frames - first;
  Frames values(static_cast<std::size_t>(frames * opened->info().channels));
  if (auto done = opened->read(first, frames, values.data()); !done)
    return std::move(done.failure());
  return values;
}
std::string refusal(const AudioBytes& file) {
  const auto values = read(file);
  return values ? "accepted" : values.failure().message;
}
/// Whether the bits are the same.
bool same(const Frames& a, const float* b, std::size_t count) {
  return a.size() == count && std::memcmp(a.data(), b, count * sizeof(float)) == 0;
}

/// One file of each format.
std::vector<AudioBytes> every_format(const made::RecordingOptions& options) {
  return {made::wav(options),    made::aiff(options), made::flac(options),
          made::vorbis(options), made::opus(options), made::flac_without_length(options)};
}

TEST(AudioTest, SixteenBitsAreDecodedExactly) {
  for (const int channels : {1, 2, 5}) {
    for (const int frames : {0, 1, 777, 20'000}) {
      const made::RecordingOptions options{.frames = frames, .channels = channels, .rate = 44'100};
      const auto noise = made::audio_noise(options);
      std::vector<AudioBytes> files{made::wav(options), made::aiff(options)};
      if (frames > 0) files.push_back(made::flac(options));
      for (const AudioBytes& file : files) {
        const auto values = read(file);
        ASSERT_TRUE(values) << values.failure().message;
        ASSERT_EQ((*values).size(), noise.size());
        for (std::size_t i = 0; i < noise.size(); ++i)
          ASSERT_EQ((*values)[i], static_cast<float>(noise[i]) / 32768.0F) << i;
      }
    }
  }
}

TEST(AudioTest, EveryWidthOfPcmHasTheSameScale) {
  const AudioBytes bytes{0x00, 0x80, 0xff, 0x40};  // 8 bits have no sign
  const auto eight = read(made::wav_of({.bits = 8}, bytes));
  EXPECT_EQ(*eight, (Frames{-1.0F, 0.0F, 127.0F / 128, -0.5F}));
  AudioBytes sound;
  for (const std::int32_t value : {-8'388'608, 0, 4'194'304, 1})
    made::put_number(sound, static_cast<std::uint32_t>(value), 3);
  const auto wide = read(made::wav_of({.bits = 24}, sound));
  EXPECT_EQ(*wide, (Frames{-1.0F, 0.0F, 0.5F, 1.0F / 8'388'608}));
}

TEST(AudioTest, FloatsAreKeptAsTheyAre) {
  const Frames values{0.0F, -3.5F, 1e-30F, 1e30F};
  EXPECT_EQ(*read(made::float_wav({.frames = 4}, values)), values);
}

TEST(AudioTest, InfoIsThatOfTheHeader) {
  const made::RecordingOptions options{.frames = 5000, .channels = 2, .rate = 48'000};
  for (const AudioBytes& file : every_format(options)) {
    const auto opened = AudioFile::open(made::audio_bytes(file));
    ASSERT_TRUE(opened) << opened.failure().message;
    const AudioInfo& info = (*opened).info();
    EXPECT_EQ(info.frames, 5000) << audio_format_name(info.format);
    EXPECT_EQ(info.channels, 2);
    EXPECT_EQ(info.rate, 48'000);
  }
}

TEST(AudioTest, APartIsThatPartOfTheWholeInEveryFormat) {
  for (const int channels : {1, 2}) {
    const made::RecordingOptions options{.frames = 60'000, .channels = channels, .rate = 24'000};
    for (const AudioBytes& file : every_format(options)) {
      const auto whole = read(file);
      ASSERT_TRUE(whole) << whole.failure().message;
      std::mt19937 draw(7);  // NOLINT: the same each time
      for (int i = 0; i < 40; ++i) {
        const std::int64_t first = draw() % 60'000;
        const std::int64_t frames = draw() % (60'000 - first + 1);
        const auto part = read(file, first, frames);
        ASSERT_TRUE(part) << part.failure().message;
        ASSERT_TRUE(same(*part, (*whole).data() + first * channels,
                         static_cast<std::size_t>(frames * channels)))
            << audio_format_name((*AudioFile::open(made::audio_bytes(file))).info().format) << ": "
            << first << " + " << frames;
      }
    }
  }
}

TEST(AudioTest, OneFileCanBeReadInAnyOrder) {
  for (const AudioBytes& file : every_format({.frames = 30'000})) {
    const auto whole = read(file);
    ASSERT_TRUE(whole) << whole.failure().message;
    auto opened = AudioFile::open(made::audio_bytes(file));
    for (const std::int64_t first : {20'000, 100, 21'000, 0, 0, 29'500}) {
      Frames part(500);
      ASSERT_TRUE(opened->read(first, 500, part.data()));
      ASSERT_TRUE(same(part, (*whole).data() + first, 500)) << first;
    }
  }
}

TEST(AudioTest, AFileThatEndsEarlySaysHowManyFramesAreThere) {
  const AudioBytes flac = made::flac({.frames = 50'000});
  const AudioBytes half(flac.begin(), flac.begin() + static_cast<std::ptrdiff_t>(flac.size() / 2));
  EXPECT_THAT(refusal(half), testing::MatchesRegex(
                                 "the FLAC ends or is damaged after [1-9][0-9]* of 50000 frames"));
  EXPECT_TRUE(read(half, 100, 1000)) << "what is there can be read";
  const auto late = read(half, 49'000, 1000);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.failure().message, refusal(half));

  for (const AudioBytes& ogg : {made::vorbis({.frames = 50'000}), made::opus({.frames = 50'000})})
    EXPECT_THAT(refusal({ogg.begin(), ogg.begin() + static_cast<std::ptrdiff_t>(ogg.size() / 2)}),
                testing::ContainsRegex("is truncated: its first [1-9][0-9]* frames are there"));
}

TEST(AudioTest, ADamagedFlacFails) {
  for (AudioBytes file :
       {made::flac({.frames = 50'000}), made::flac_without_length({.frames = 50'000})}) {
    EXPECT_EQ(refusal(file), "accepted");
    const AudioBytes half(file.begin(),
                          file.begin() + static_cast<std::ptrdiff_t>(file.size() / 2));
    EXPECT_THAT(refusal(half), HasSubstr("ends or is damaged after"));
    file[file.size() / 2] ^= 0x55U;
    EXPECT_THAT(refusal(file), HasSubstr("ends or is damaged after"));
  }
}

TEST(AudioTest, AWavOfUnknownSizeGoesToTheEndOfTheFile) {
  AudioBytes file = made::wav({.frames = 500});
  const auto expected = read(file);
  std::fill_n(file.begin() + 4, 4, std::uint8_t{0xff});
  std::fill_n(file.begin() + 40, 4, std::uint8_t{0xff});
  const auto values = read(file);
  ASSERT_TRUE(values) << values.failure().message;
  EXPECT_EQ(*values, *expected);
}

TEST(AudioTest, AHeaderThatClaimsTooManyFramesFailsWithoutMemory) {
  AudioBytes ogg = made::vorbis({.frames = 5000});
  const std::size_t last = made::last_ogg_page(ogg);
  ogg[last + 13] = 0x10;  // the position: 2^60 frames and some
  EXPECT_THAT(refusal(ogg), HasSubstr("does not match its checksum"));
  made::sign_ogg_page(ogg, last);
  EXPECT_THAT(refusal(ogg), HasSubstr("claims 11529215046068"));
  AudioBytes flac = made::flac({.frames = 5000});
  flac[21] |= 0x0fU;  // the upper bits of 36
  const auto large = AudioFile::open(made::audio_bytes(flac));
  ASSERT_TRUE(large) << "the reader of the file decides";
  EXPECT_GT((*large).info().frames, std::int64_t{1} << 35);
}

TEST(AudioTest, FramesAreCountedUpToALimit) {
  const AudioBytes file = made::flac_without_length({.frames = 5000});
  EXPECT_TRUE(AudioFile::open(made::audio_bytes(file), {.counted_frames_max = 5000}));
  const auto refused = AudioFile::open(made::audio_bytes(file), {.counted_frames_max = 4999});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().message, "the FLAC has more than 4999 frames");
}

TEST(AudioTest, AStoppedLoaderEndsTheWork) {
  const AudioBytes file = made::wav({.frames = 100});
  auto opened = AudioFile::open(made::audio_bytes(file), {.cancelled = [] { return true; }});
  ASSERT_TRUE(opened);
  Frames values(100);
  const auto done = opened->read(0, 100, values.data());
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.failure().cancelled());
}

#else

TEST(AudioTest, WithoutLibsndfileAFileFails) {
  const auto opened = AudioFile::open(made::audio_bytes(made::wav()));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.failure().message, HasSubstr("without libsndfile"));
}

#endif

}  // namespace
}  // namespace penstock
