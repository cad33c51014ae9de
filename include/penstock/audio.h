#pragma once
// Audio: folders and files of recordings, and the op that decodes them.
//
//   audio_folder("words").map(audio::decode({.rate = 16'000, .frames = 16'000})).batch(64)
//
// Of a crop only the frames that it needs are decoded. A frame is one value of each channel.

#include <cstdint>
#include <string>
#include <vector>

#include <penstock/dataset.h>
#include <penstock/folder.h>
#include <penstock/op.h>

namespace penstock {

/// Lists a folder of recordings as `list_images` lists images; the default extensions are wav flac
/// ogg oga opus aif aiff.
FolderIndex list_audio(const std::string& root, const FolderOptions& options = {});
/// {audio: the encoded file, label: i64}, as `Dataset::image_folder` does for images.
Dataset audio_folder(const std::string& root, const FolderOptions& options = {});
/// The same for a folder that was listed before.
Dataset audio_folder(const FolderIndex& index, bool with_path = false);
/// {audio: the encoded file, label: i64}, or {audio} if `labels` is empty.
Dataset audio_files(const std::vector<std::string>& paths,
                    const std::vector<std::int64_t>& labels = {});

namespace audio {

/// Which frames of a longer recording are delivered.
enum class AudioCrop : std::uint8_t {
  random,  // drawn with the sample's key: another part in each epoch
  center,
  start,
};

struct AudioOptions {
  std::string path = "audio";  // the field with the encoded bytes; "": the whole element
  int rate = 0;                // frames per second to resample to; 0: as stored
  /// 1: the mean of all channels. 0: as stored. More: as many as stored, or copies of one channel.
  int channels = 1;
  std::int64_t frames = 0;  // length of the result, after resampling; 0: the whole recording
  AudioCrop crop = AudioCrop::random;
  bool pad = true;  // fills a shorter recording with zeros at its end; false: it fails
  std::uint64_t seed = 0;
  std::uint64_t values_max = std::uint64_t{1} << 28;  // frames times channels; more fail
};

/// Decodes WAV, FLAC, Ogg (Vorbis, Opus) and AIFF to f32 between -1 and 1, of shape [frames] for
/// one channel and [frames, channels] otherwise; the format is detected from the content. Values
/// beyond that range in files of floats are kept; NaN and infinity fail the sample, and so do
/// truncated files. Throws ConfigError if an option is out of range, or if penstock was built
/// without a library that is needed: libsndfile, and libsoxr for `rate`.
OpCall decode(const AudioOptions& options = {});

}  // namespace audio
}  // namespace penstock
