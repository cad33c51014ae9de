#include "codec/audio.h"

#ifdef PENSTOCK_SNDFILE
#include <sndfile.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "base/cancelled.h"

namespace penstock {

#ifdef PENSTOCK_SNDFILE

namespace {

constexpr std::int64_t kPieceFrames = 1 << 14;

/// The bytes as a file for libsndfile, which passes a pointer to this to each function.
struct MemoryFile {
  std::span<const std::byte> bytes = {};
  sf_count_t at = 0;

  static MemoryFile& of(void* user) { return *static_cast<MemoryFile*>(user); }
  static sf_count_t size(void* user) { return static_cast<sf_count_t>(of(user).bytes.size()); }
  static sf_count_t tell(void* user) { return of(user).at; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    MemoryFile& file = of(user);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.at : size(user);
    sf_count_t to = 0;
    if (__builtin_add_overflow(base, offset, &to) || to < 0) return -1;
    file.at = to;
    return to;
  }
  static sf_count_t read(void* to, sf_count_t count, void* user) {
    MemoryFile& file = of(user);
    const sf_count_t there =
        std::clamp<sf_count_t>(size(user) - file.at, 0, std::max<sf_count_t>(0, count));
    if (there > 0) std::memcpy(to, file.bytes.data() + file.at, static_cast<std::size_t>(there));
    file.at += there;
    return there;
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
};

struct CloseSound {
  void operator()(SNDFILE* sound) const { sf_close(sound); }
};
using Sound = std::unique_ptr<SNDFILE, CloseSound>;

}  // namespace

struct AudioFile::Impl {
  MemoryFile file = {};
  Sound sound = {};
  AudioInfo info = {};
  AudioLimits limits = {};
  std::int64_t at = 0;  // the next frame of `sound`
  /// False if a decoder that starts in the middle returns slightly different values at first, or
  /// if the library does not know where the file ends.
  bool can_seek = true;

  /// Opens the file from its start.
  Result<void> start() {
    SF_VIRTUAL_IO functions{.get_filelen = MemoryFile::size,
                            .seek = MemoryFile::seek,
                            .read = MemoryFile::read,
                            .write = MemoryFile::write,
                            .tell = MemoryFile::tell};
    SF_INFO header{};
    sound.reset();
    file.at = 0;
    at = 0;
    sound.reset(sf_open_virtual(&functions, SFM_READ, &header, &file));
    // Its reason is a global variable, which other threads change at the same time.
    if (!sound)
      return Failure{.message =
                         fmt::format("libsndfile does not read the {}: its header is damaged",
                                     audio_format_name(info.format))};
    info.frames = header.frames;
    info.channels = header.channels;
    info.rate = header.samplerate;
    return {};
  }

  [[nodiscard]] Failure ends_after(std::int64_t frames) const {
    return Failure{.message = fmt::format("the {} ends or is damaged after {} of {} frames",
                                          audio_format_name(info.format), frames, info.frames),
                   .remedy = "fetch the file again, or write it again"};
  }

  /// Reads the next frames; fewer if the file ends or is damaged.
  Result<std::int64_t> next(std::int64_t frames, float* out) {
    std::int64_t done = 0;
    while (done < frames) {
      if (limits.cancelled && limits.cancelled()) return cancelled(0);
      const std::int64_t piece = std::min(frames - done, kPieceFrames);
      const std::int64_t got = sf_readf_float(sound.get(), out + done * info.channels, piece);
      if (got > 0) done += got;
      if (got != piece) break;
    }
    at += done;
    return done;
  }

  /// Decodes frames and forgets them, until frame `to` is the next; sooner if the file ends.
  Result<void> skip_to(std::int64_t to) {
    std::vector<float> forgotten(static_cast<std::size_t>(kPieceFrames * info.channels));
    while (at < to) {
      const std::int64_t piece = std::min(to - at, kPieceFrames);
      const auto got = next(piece, forgotten.data());
      if (!got) return got.failure();
      if (*got < piece) break;
    }
    return {};
  }

  /// Makes `frame` the next one. Where a seek fails, decoding from the start shows how many frames
  /// there are.
  Result<void> go_to(std::int64_t frame) {
    if (frame == at) return {};
    if (can_seek) {
      at = sf_seek(sound.get(), frame, SEEK_SET);
      if (at == frame) return {};
    }
    if (frame < at || can_seek) {
      const std::int64_t total = info.frames;
      if (auto done = start(); !done) return done;
      info.frames = total;
    }
    if (auto done = skip_to(frame); !done) return done;
    if (at < frame) return ends_after(at);
    return {};
  }

  /// For a file whose header does not have the number of frames.
  Result<void> count_frames() {
    const auto most = static_cast<std::int64_t>(
        std::min<std::uint64_t>(limits.counted_frames_max, kAudioFramesMax));
    if (auto done = skip_to(most + 1); !done) return done;
    const std::int64_t counted = at;
    if (sf_error(sound.get()) != SF_ERR_NO_ERROR || info.format != AudioFormat::flac)
      return Failure{.message = fmt::format("the {} ends or is damaged after {} frames",
                                            audio_format_name(info.format), counted),
                     .remedy = "fetch the file again, or write it again"};
    if (counted > most)
      return Failure{.message = fmt::format("the FLAC has more than {} frames", most),
                     .remedy = "raise values_max if such files are meant to be read"};
    if (auto done = start(); !done) return done;
    info.frames = counted;
    can_seek = false;
    return {};
  }

  Result<void> open() {
    const auto format = check_audio_header(file.bytes);
    if (!format) return format.failure();
    info.format = *format;
    // A decoder of Opus that starts in the middle needs 80 ms to become exact, and libsndfile 1.2.0
    // seeks to wrong frames near the end of Vorbis.
    can_seek = info.format != AudioFormat::opus && info.format != AudioFormat::vorbis;
    if (auto done = start(); !done) return done;
    if (info.channels < 1 || info.rate < 1 || info.frames < 0)
      return Failure{.message = fmt::format("the {} says it has {} channels, {} Hz and {} frames",
                                            audio_format_name(info.format), info.channels,
                                            info.rate, info.frames)};
    if (info.frames == SF_COUNT_MAX) return count_frames();
    if (info.frames > kAudioFramesMax) return too_many_frames(info.format, info.frames);
    return {};
  }
};

bool can_decode_audio() {
  return true;
}

Result<AudioFile> AudioFile::open(std::span<const std::byte> bytes, AudioLimits limits) {
  auto impl = std::make_unique<Impl>();
  impl->file.bytes = bytes;
  impl->limits = std::move(limits);
  if (auto done = impl->open(); !done) return std::move(done.failure());
  return AudioFile(std::move(impl));
}

Result<void> AudioFile::read(std::int64_t first, std::int64_t frames, float* out) {
  Impl& file = *impl_;
  if (frames == 0) return {};
  if (auto done = file.go_to(first); !done) return done;
  const auto got = file.next(frames, out);
  if (!got) return got.failure();
  if (*got < frames) return file.ends_after(first + *got);
  return {};
}

#else

struct AudioFile::Impl {
  AudioInfo info = {};
};

bool can_decode_audio() {
  return false;
}

Result<AudioFile> AudioFile::open(std::span<const std::byte>, AudioLimits) {
  return Failure{.message = "this penstock was built without libsndfile",
                 .remedy = "install libsndfile and build again"};
}

Result<void> AudioFile::read(std::int64_t, std::int64_t, float*) {
  return Failure{.message = "this penstock was built without libsndfile"};
}

#endif

AudioFile::AudioFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AudioFile::~AudioFile() = default;
AudioFile::AudioFile(AudioFile&&) noexcept = default;
const AudioInfo& AudioFile::info() const {
  return impl_->info;
}

}  // namespace penstock
