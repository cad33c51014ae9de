#pragma once
// Small recordings of every kind, for the audio target to start from.
#include <string>
#include <utility>
#include <vector>

#include "codec/audio_for_tests.h"
#include "fuzz/image_seeds.h"

namespace penstock::fuzz {

inline Seeds audio_seeds() {
  const made::RecordingOptions mono{.frames = 120};
  const made::RecordingOptions stereo{.frames = 90, .channels = 2, .rate = 44'100};
  Seeds seeds;
  const auto add = [&seeds](const std::string& name, made::AudioBytes file) {
    seeds.push_back({"audio", name, std::move(file)});
  };
  add("wav", made::wav(mono));
  add("wav_stereo", made::wav(stereo));
  const made::AudioBytes sound = made::noise(96);
  for (const int bits : {8, 24, 32})
    add(fmt::format("wav_{}", bits), made::wav_of({.bits = bits}, sound));
  add("wav_64_float", made::wav_of({.bits = 64, .tag = 3}, sound));
  add("wav_a_law", made::wav_of({.bits = 8, .tag = 6, .other_chunk = true}, sound));
  add("wav_mu_law", made::wav_of({.bits = 8, .tag = 7, .extensible = true}, sound));
  add("wav_float", made::float_wav({.frames = 4}, {0.5F, -2.0F, 1e30F, 0.0F}));
  add("aiff", made::aiff(stereo));
#ifdef PENSTOCK_SNDFILE
  add("flac", made::flac(mono));
  add("flac_stereo", made::flac(stereo));
  add("flac_tone", made::flac({.frames = 800}, made::audio_tone({.frames = 800}, 440)));
  add("flac_without_length", made::flac_without_length(mono));
  add("aifc_float",
      made::written_audio(SF_FORMAT_AIFF | SF_FORMAT_FLOAT, mono, made::audio_noise(mono)));
  add("aifc_mu_law",
      made::written_audio(SF_FORMAT_AIFF | SF_FORMAT_ULAW, mono, made::audio_noise(mono)));
  add("vorbis", made::vorbis(mono));
  add("opus", made::opus(mono));
#endif
  return seeds;
}

}  // namespace penstock::fuzz
