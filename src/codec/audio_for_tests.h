#pragma once
// Recordings for tests and fuzz targets: WAV and AIFF written by hand, byte by byte; FLAC and Ogg
// by libsndfile itself, without which there are none.

#ifdef PENSTOCK_SNDFILE
#include <sndfile.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/ogg_pages.h"

namespace penstock::made {

using AudioBytes = std::vector<std::uint8_t>;

inline std::span<const std::byte> audio_bytes(const AudioBytes& file) {
  return std::as_bytes(std::span(file));
}
inline std::string audio_text(const AudioBytes& file) {
  return {file.begin(), file.end()};
}

struct RecordingOptions {
  int frames = 1000;
  int channels = 1;
  int rate = 16'000;
  unsigned seed = 1;
};

/// Noise of 16 bits, frame after frame.
inline std::vector<std::int16_t> audio_noise(const RecordingOptions& options) {
  std::mt19937 random(options.seed);
  std::vector<std::int16_t> values(static_cast<std::size_t>(options.frames) *
                                   static_cast<std::size_t>(options.channels));
  for (std::int16_t& value : values) value = static_cast<std::int16_t>(random());
  return values;
}

/// One channel of a tone of 16 bits, at half of full scale.
inline std::vector<std::int16_t> audio_tone(const RecordingOptions& options, double hertz) {
  std::vector<std::int16_t> values(static_cast<std::size_t>(options.frames));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int16_t>(std::lround(
        16384 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / options.rate)));
  return values;
}

inline void put_text(AudioBytes& file, std::string_view text) {
  file.insert(file.end(), text.begin(), text.end());
}
inline void put_number(AudioBytes& file, std::uint64_t value, int bytes, bool little = true) {
  for (int i = 0; i < bytes; ++i)
    file.push_back(static_cast<std::uint8_t>(value >> (8 * (little ? i : bytes - 1 - i))));
}

struct WavOptions {
  int channels = 1;
  int rate = 16'000;
  int bits = 16;
  int tag = 1;               // 1 PCM, 3 floats
  bool extensible = false;   // the tag in a longer header
  bool other_chunk = false;  // one of odd size before the data
};

/// A WAV with these bytes of sound.
inline AudioBytes wav_of(const WavOptions& options, const AudioBytes& sound) {
  AudioBytes file;
  const auto put = [&file](std::int64_t value, int bytes) {
    put_number(file, static_cast<std::uint64_t>(value), bytes);
  };
  const int frame = options.channels * options.bits / 8;
  put_text(file, "RIFF");
  put(0, 4);
  put_text(file, "WAVEfmt ");
  put(options.extensible ? 40 : 16, 4);
  put(options.extensible ? 0xfffe : options.tag, 2);
  put(options.channels, 2);
  put(options.rate, 4);
  put(std::int64_t{options.rate} * frame, 4);
  put(frame, 2);
  put(options.bits, 2);
  if (options.extensible) {
    put(22, 2);
    put(options.bits, 2);
    put(0, 4);
    put(options.tag, 2);
    for (const int byte : {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71})
      put(byte, 1);
  }
  if (options.other_chunk) {
    put_text(file, "LIST");
    put(3, 4);
    put_text(file, std::string_view("abc\0", 4));
  }
  put_text(file, "data");
  put(static_cast<std::int64_t>(sound.size()), 4);
  file.insert(file.end(), sound.begin(), sound.end());
  if (sound.size() % 2 == 1) file.push_back(0);
  for (int i = 0; i < 4; ++i)
    file[4 + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>((file.size() - 8) >> (8 * i));
  return file;
}

inline AudioBytes wav(const RecordingOptions& options, const std::vector<std::int16_t>& values) {
  AudioBytes sound;
  for (const std::int16_t value : values) put_number(sound, static_cast<std::uint16_t>(value), 2);
  return wav_of({.channels = options.channels, .rate = options.rate}, sound);
}
inline AudioBytes wav(const RecordingOptions& options = {}) {
  return wav(options, audio_noise(options));
}
/// A WAV of 32-bit floats.
inline AudioBytes float_wav(const RecordingOptions& options, const std::vector<float>& values) {
  AudioBytes sound;
  for (const float value : values) put_number(sound, std::bit_cast<std::uint32_t>(value), 4);
  return wav_of({.channels = options.channels, .rate = options.rate, .bits = 32, .tag = 3}, sound);
}

/// An AIFF of 16 bits; its rate is 80 bits of a float.
inline AudioBytes aiff(const RecordingOptions& options, const std::vector<std::int16_t>& values) {
  AudioBytes file;
  const auto put = [&file](std::uint64_t value, int bytes) {
    put_number(file, value, bytes, false);
  };
  put_text(file, "FORM");
  put(46 + 2 * values.size(), 4);
  put_text(file, "AIFFCOMM");
  put(18, 4);
  put(static_cast<std::uint64_t>(options.channels), 2);
  put(static_cast<std::uint64_t>(options.frames), 4);
  put(16, 2);
  const auto rate = static_cast<std::uint64_t>(options.rate);
  const int shift = std::countl_zero(rate);
  put(static_cast<std::uint64_t>(16383 + 63 - shift), 2);
  put(rate << shift, 8);
  put_text(file, "SSND");
  put(8 + 2 * values.size(), 4);
  put(0, 8);
  for (const std::int16_t value : values) put(static_cast<std::uint16_t>(value), 2);
  return file;
}
inline AudioBytes aiff(const RecordingOptions& options = {}) {
  return aiff(options, audio_noise(options));
}

/// Where the last page of an Ogg file begins.
inline std::size_t last_ogg_page(const AudioBytes& file) {
  return audio_text(file).rfind("OggS");
}
/// Gives the page at `at`, the last one, its checksum.
inline void sign_ogg_page(AudioBytes& file, std::size_t at) {
  const std::uint32_t sum = ogg_checksum(audio_bytes(file).subspan(at));
  for (unsigned i = 0; i < 4; ++i) file[at + 22 + i] = static_cast<std::uint8_t>(sum >> (8 * i));
}

#ifdef PENSTOCK_SNDFILE

/// What libsndfile writes to.
struct WrittenFile {
  AudioBytes bytes = {};
  sf_count_t at = 0;
  static WrittenFile& of(void* user) { return *static_cast<WrittenFile*>(user); }
  static sf_count_t size(void* user) { return static_cast<sf_count_t>(of(user).bytes.size()); }
  static sf_count_t tell(void* user) { return of(user).at; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? of(user).at : size(user);
    return of(user).at = base + offset;
  }
  static sf_count_t read(void* to, sf_count_t count, void* user) {
    const sf_count_t there = std::clamp<sf_count_t>(size(user) - of(user).at, 0, count);
    std::memcpy(to, of(user).bytes.data() + of(user).at, static_cast<std::size_t>(there));
    of(user).at += there;
    return there;
  }
  static sf_count_t write(const void* from, sf_count_t count, void* user) {
    WrittenFile& file = of(user);
    if (file.at + count > size(user)) file.bytes.resize(static_cast<std::size_t>(file.at + count));
    std::memcpy(file.bytes.data() + file.at, from, static_cast<std::size_t>(count));
    file.at += count;
    return count;
  }
};

/// A file of `format`, as libsndfile numbers them, with values between -1 and 1.
inline AudioBytes written_audio(int format, const RecordingOptions& options,
                                const std::vector<std::int16_t>& values) {
  SF_VIRTUAL_IO io{.get_filelen = WrittenFile::size,
                   .seek = WrittenFile::seek,
                   .read = WrittenFile::read,
                   .write = WrittenFile::write,
                   .tell = WrittenFile::tell};
  SF_INFO info{};
  info.samplerate = options.rate;
  info.channels = options.channels;
  info.format = format;
  WrittenFile file;
  SNDFILE* const sound = sf_open_virtual(&io, SFM_WRITE, &info, &file);
  if (sound == nullptr) std::abort();
  // Vorbis of libsndfile needs a lot of stack for long pieces.
  for (std::int64_t at = 0; at < options.frames; at += 4096)
    sf_writef_short(sound, values.data() + at * options.channels,
                    std::min<std::int64_t>(4096, options.frames - at));
  sf_close(sound);
  return file.bytes;
}
inline AudioBytes flac(const RecordingOptions& options, const std::vector<std::int16_t>& values) {
  return written_audio(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, options, values);
}
inline AudioBytes flac(const RecordingOptions& options = {}) {
  return flac(options, audio_noise(options));
}
/// A FLAC as a program writes it to a pipe: the number of frames is 0.
inline AudioBytes flac_without_length(const RecordingOptions& options) {
  AudioBytes file = flac(options);
  file[21] &= 0xf0U;
  std::fill_n(file.begin() + 22, 4, std::uint8_t{0});
  return file;
}
inline AudioBytes vorbis(const RecordingOptions& options = {}) {
  return written_audio(SF_FORMAT_OGG | SF_FORMAT_VORBIS, options, audio_noise(options));
}
/// Opus has rates of 8, 12, 16, 24 and 48 kHz only.
inline AudioBytes opus(const RecordingOptions& options = {}) {
  return written_audio(SF_FORMAT_OGG | SF_FORMAT_OPUS, options, audio_noise(options));
}

#endif

}  // namespace penstock::made
