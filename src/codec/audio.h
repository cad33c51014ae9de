#pragma once
// Encoded recordings: a file is opened once, then any of its frames are read. A frame is one value
// of each channel. Thread-safe as long as each AudioFile is used by one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "codec/audio_header.h"
#include "penstock/result.h"

namespace penstock {

/// Whether this build has libsndfile.
bool can_decode_audio();

struct AudioInfo {
  AudioFormat format = AudioFormat::wav;
  std::int64_t frames = 0;
  int channels = 1;
  int rate = 0;  // frames per second
};

struct AudioLimits {
  /// Frames that are counted by decoding, if the header does not have their number.
  std::uint64_t counted_frames_max = std::uint64_t{1} << 28;
  /// Called between pieces of long recordings; true ends the work with a Failure `cancelled`.
  std::function<bool()> cancelled = {};
};

class AudioFile {
 public:
  /// `bytes` must stay valid as long as the AudioFile. Nothing is decoded yet, except in a FLAC
  /// without its number of frames, which are counted.
  static Result<AudioFile> open(std::span<const std::byte> bytes, AudioLimits limits = {});
  ~AudioFile();
  AudioFile(AudioFile&&) noexcept;
  AudioFile& operator=(AudioFile&&) = delete;

  [[nodiscard]] const AudioInfo& info() const;
  /// Writes frames [first, first + frames), which must be within the file, with the channels of
  /// each frame next to each other. The values equal those of a read of the whole file, bit by bit.
  /// Integers are divided by their range: 16 bits become multiples of 2^-15. A Failure says after
  /// how many frames the file ends or is damaged, as far as these frames show it.
  Result<void> read(std::int64_t first, std::int64_t frames, float* out);

 private:
  struct Impl;
  explicit AudioFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
