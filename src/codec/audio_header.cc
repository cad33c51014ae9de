#include "codec/audio_header.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/printable.h"
#include "codec/formats.h"
#include "codec/ogg_pages.h"

namespace penstock {
namespace {

constexpr const char* kFetchAgain = "fetch the file again: it is truncated";
constexpr const char* kConvert = "convert the file to WAV with PCM, or to FLAC";

Failure damaged(AudioFormat format, std::string_view why) {
  return Failure{.message = fmt::format("the {} {}", audio_format_name(format), why)};
}

Failure truncated(AudioFormat format, std::uint64_t there, std::uint64_t claimed) {
  return Failure{.message = fmt::format("the {} is truncated: {} of {} frames are there",
                                        audio_format_name(format), there, claimed),
                 .remedy = kFetchAgain};
}

/// A chunk of a RIFF or IFF file.
struct Chunk {
  EncodedBytes name = {};
  EncodedBytes data = {};     // as much of it as is there
  std::uint32_t claimed = 0;  // its size according to the file
};

/// The chunks after the header of 12 bytes, with sizes that have their low byte first or last.
class Chunks {
 public:
  Chunks(EncodedBytes bytes, bool little) : left_(bytes.subspan(12)), little_(little) {}

  std::optional<Chunk> next() {
    constexpr std::size_t kHeader = 8;
    if (left_.size() < kHeader) return std::nullopt;
    const std::uint32_t claimed = little_ ? little32(left_, 4) : big32(left_, 4);
    const EncodedBytes after = left_.subspan(kHeader);
    const std::size_t there = std::min<std::size_t>(claimed, after.size());
    Chunk chunk{left_.first(4), after.first(there), claimed};
    left_ = after.subspan(std::min<std::size_t>(there + claimed % 2, after.size()));
    return chunk;
  }

 private:
  EncodedBytes left_;
  bool little_;
};

/// 1 PCM, 3 floats, 6 and 7 A-law and mu-law; in an extensible header the tag comes later.
bool is_known_wav(EncodedBytes format, std::uint32_t& tag) {
  constexpr std::uint32_t kExtensible = 0xfffe;
  tag = little16(format, 0);
  if (tag == kExtensible && format.size() >= 26) tag = little16(format, 24);
  return tag == 1 || tag == 3 || tag == 6 || tag == 7;
}

Result<AudioFormat> check_wav(EncodedBytes bytes) {
  // What programs write that do not know the size yet: all bits, or nearly 2 GiB.
  constexpr std::uint32_t kSizeUnknown = 0x7fff0000;
  constexpr auto kWav = AudioFormat::wav;
  Chunks chunks(bytes, true);
  std::uint64_t frame_bytes = 0;
  while (const auto chunk = chunks.next()) {
    if (has_text(chunk->name, 0, "fmt ")) {
      if (chunk->data.size() < 16) return damaged(kWav, "has a damaged header");
      std::uint32_t tag = 0;
      if (!is_known_wav(chunk->data, tag)) {
        Failure failure = damaged(kWav, fmt::format("has encoding {}, not PCM or floats", tag));
        failure.remedy = kConvert;
        return failure;
      }
      const std::uint32_t channels = little16(chunk->data, 2);
      const std::uint32_t bits = little16(chunk->data, 14);
      if (channels == 0) return damaged(kWav, "says it has no channels");
      if (little32(chunk->data, 4) == 0) return damaged(kWav, "says it has a rate of 0 Hz");
      if (bits == 0 || bits > 64) return damaged(kWav, fmt::format("has {} bits per value", bits));
      frame_bytes = std::uint64_t{channels} * ((bits + 7) / 8);
    } else if (has_text(chunk->name, 0, "data")) {
      if (frame_bytes == 0) return damaged(kWav, "has no format before its data");
      if (chunk->data.size() < chunk->claimed && chunk->claimed < kSizeUnknown)
        return truncated(kWav, chunk->data.size() / frame_bytes, chunk->claimed / frame_bytes);
      return kWav;
    }
  }
  return Failure{.message = "the WAV has no data", .remedy = kFetchAgain};
}

bool is_known_aiff(EncodedBytes type) {
  constexpr std::array<std::string_view, 12> kTypes{"NONE", "twos", "sowt", "fl32", "FL32", "fl64",
                                                    "FL64", "ulaw", "ULAW", "alaw", "ALAW", "in24"};
  return std::ranges::any_of(kTypes,
                             [&](std::string_view known) { return has_text(type, 0, known); });
}

Result<AudioFormat> check_aiff(EncodedBytes bytes) {
  constexpr auto kAiff = AudioFormat::aiff;
  const bool with_type = has_text(bytes, 8, "AIFC");
  Chunks chunks(bytes, false);
  std::optional<std::uint64_t> frames;
  std::optional<Chunk> sound;
  while (const auto chunk = chunks.next()) {
    if (has_text(chunk->name, 0, "COMM")) {
      if (chunk->data.size() < (with_type ? 22U : 18U))
        return damaged(kAiff, "has a damaged header");
      if (big16(chunk->data, 0) == 0) return damaged(kAiff, "says it has no channels");
      if (with_type && !is_known_aiff(chunk->data.subspan(18))) {
        const auto type = chunk->data.subspan(18, 4);
        Failure failure =
            damaged(kAiff, fmt::format("has encoding \"{}\", not PCM or floats",
                                       printable({reinterpret_cast<const char*>(type.data()), 4})));
        failure.remedy = kConvert;
        return failure;
      }
      frames = big32(chunk->data, 2);
    } else if (has_text(chunk->name, 0, "SSND")) {
      sound = chunk;
    }
  }
  if (!frames) return Failure{.message = "the AIFF has no header", .remedy = kFetchAgain};
  if (*frames == 0) return kAiff;
  constexpr std::size_t kSoundHeader = 8;
  if (!sound || sound->data.size() < kSoundHeader) return truncated(kAiff, 0, *frames);
  if (sound->data.size() < sound->claimed) {
    const std::uint64_t there = sound->data.size() - kSoundHeader;
    return truncated(kAiff, *frames * there / (sound->claimed - kSoundHeader), *frames);
  }
  return kAiff;
}

Result<AudioFormat> check_flac(EncodedBytes bytes) {
  constexpr auto kFlac = AudioFormat::flac;
  constexpr std::size_t kStreamInfo = 8;  // where it begins, after the name and its own header
  if (bytes.size() < kStreamInfo + 34)
    return Failure{.message = "the FLAC ends within its header", .remedy = kFetchAgain};
  if ((byte_at(bytes, 4) & 0x7fU) != 0) return damaged(kFlac, "does not begin with its format");
  if (big32(bytes, kStreamInfo + 10) >> 12U == 0)
    return damaged(kFlac, "says it has a rate of 0 Hz");
  return kFlac;
}

Result<AudioFormat> ogg_format(EncodedBytes bytes) {
  constexpr std::size_t kPageHeader = 27;
  if (bytes.size() < kPageHeader)
    return Failure{.message = "the Ogg ends within its header", .remedy = kFetchAgain};
  const std::size_t packet = kPageHeader + byte_at(bytes, kPageHeader - 1);
  if (has_text(bytes, packet, "\x01vorbis")) return AudioFormat::vorbis;
  if (has_text(bytes, packet, "OpusHead")) return AudioFormat::opus;
  return Failure{.message = "the Ogg holds neither Vorbis nor Opus", .remedy = kConvert};
}

Result<AudioFormat> check_ogg(EncodedBytes bytes) {
  auto format = ogg_format(bytes);
  if (!format) return format;
  const auto pages = check_ogg_pages(bytes);
  if (!pages) return pages.failure();
  if ((*pages).position > kAudioFramesMax) return too_many_frames(*format, (*pages).position);
  if ((*pages).ended && (*pages).position >= 0) return format;
  return Failure{.message = fmt::format("the {} is truncated: its first {} frames are there{}",
                                        audio_format_name(*format),
                                        std::max<std::int64_t>(0, (*pages).position),
                                        *format == AudioFormat::opus ? ", counted at 48 kHz" : ""),
                 .remedy = kFetchAgain};
}

}  // namespace

std::string_view audio_format_name(AudioFormat format) {
  constexpr std::array<std::string_view, 5> kNames{"WAV", "FLAC", "Ogg Vorbis", "Ogg Opus", "AIFF"};
  return kNames[static_cast<std::size_t>(format)];
}

std::vector<std::string> audio_extensions() {
  return {"wav", "flac", "ogg", "oga", "opus", "aif", "aiff"};
}

Result<AudioFormat> check_audio_header(std::span<const std::byte> bytes) {
  if (has_text(bytes, 0, "RIFF") && has_text(bytes, 8, "WAVE")) return check_wav(bytes);
  if (has_text(bytes, 0, "fLaC")) return check_flac(bytes);
  if (has_text(bytes, 0, "OggS")) return check_ogg(bytes);
  if (has_text(bytes, 0, "FORM") && (has_text(bytes, 8, "AIFF") || has_text(bytes, 8, "AIFC")))
    return check_aiff(bytes);
  constexpr std::size_t kShown = 8;
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  if (bytes.empty()) return Failure{.message = "the file is empty"};
  return Failure{.message = fmt::format("this is not a recording: it begins with \"{}\"",
                                        printable({text, std::min(bytes.size(), kShown)})),
                 .remedy = "WAV, FLAC, Ogg (Vorbis or Opus) and AIFF are decoded"};
}

}  // namespace penstock
