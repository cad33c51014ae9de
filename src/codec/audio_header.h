#pragma once
// What the first bytes of a recording claim, checked before a library sees the file: only known
// formats and encodings are decoded, and a file that ends early is noticed.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/result.h"

namespace penstock {

enum class AudioFormat : std::uint8_t { wav, flac, vorbis, opus, aiff };
/// "WAV", "FLAC", "Ogg Vorbis", "Ogg Opus", "AIFF".
std::string_view audio_format_name(AudioFormat format);
/// The extensions of all formats, in lower case.
std::vector<std::string> audio_extensions();

/// A header that claims more frames is damaged: two years at 16 kHz.
inline constexpr std::int64_t kAudioFramesMax = std::int64_t{1} << 40;
inline Failure too_many_frames(AudioFormat format, std::int64_t frames) {
  return Failure{.message = fmt::format("the {} claims {} frames, more than {}",
                                        audio_format_name(format), frames, kAudioFramesMax)};
}

/// Detects the format and checks the header. A Failure says what is wrong with it: another format
/// or encoding, no channels, no rate, or fewer bytes of sound than it claims. A WAV whose size was
/// unknown when its header was written (0xFFFFFFFF, as programs write it to a pipe) is accepted.
Result<AudioFormat> check_audio_header(std::span<const std::byte> bytes);

}  // namespace penstock
