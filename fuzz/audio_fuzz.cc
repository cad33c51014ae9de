// Any bytes are a recording or a Failure that says why, whole or in part; and a part is that part
// of the whole.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "codec/audio.h"
#include "codec/audio_resample.h"

namespace {

constexpr std::int64_t kFramesMax = 1 << 16;
constexpr int kChannelsMax = 16;

/// Resamples the part and reads every value.
void resample(const std::vector<float>& part, const penstock::AudioInfo& info) {
  const penstock::Rates rates{.from = info.rate, .to = 16'000};
  if (!penstock::check_rates(rates) || !penstock::can_resample_audio()) return;
  const auto frames = static_cast<std::int64_t>(part.size()) / info.channels;
  std::vector<float> out(static_cast<std::size_t>(
      std::min(penstock::resampled_frames(frames, rates), kFramesMax) * info.channels));
  const auto done =
      penstock::resample_audio({.from = part.data(),
                                .from_frames = frames,
                                .to = out.data(),
                                .to_frames = static_cast<std::int64_t>(out.size()) / info.channels,
                                .channels = info.channels},
                               rates);
  if (!done) std::abort();
  float sum = 0;
  for (const float value : out) sum += value;
  [[maybe_unused]] static volatile float sink;
  sink = sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const penstock::AudioLimits limits{.counted_frames_max = kFramesMax};
  auto file = penstock::AudioFile::open(bytes, limits);
  if (!file) {
    if (file.failure().message.empty()) std::abort();
    return 0;
  }
  const penstock::AudioInfo info = file->info();
  if (info.frames < 0 || info.channels < 1 || info.rate < 1) std::abort();
  if (info.channels > kChannelsMax) return 0;
  const std::int64_t frames = std::min(info.frames, kFramesMax);
  std::vector<float> whole(static_cast<std::size_t>(frames * info.channels));
  const bool complete = file->read(0, frames, whole.data()).ok();

  auto other = penstock::AudioFile::open(bytes, limits);
  if (!other) std::abort();
  const std::int64_t first = frames / 3;
  std::vector<float> part(static_cast<std::size_t>((frames - first) / 2 * info.channels));
  const auto count = static_cast<std::int64_t>(part.size()) / info.channels;
  const bool there = other->read(first, count, part.data()).ok();
  if (complete && !there) std::abort();
  if (complete && !part.empty() &&
      std::memcmp(part.data(), whole.data() + first * info.channels, part.size() * sizeof(float)) !=
          0)
    std::abort();
  if (there) resample(part, info);
  return 0;
}
