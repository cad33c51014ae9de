#pragma once
// Recordings at another rate (libsoxr, its quality "HQ": 20 bits). Frame k of the result is the
// signal at the time k / to, with silence before and after the recording.

#include <cstdint>
#include <functional>

#include "penstock/result.h"

namespace penstock {

/// Whether this build has libsoxr.
bool can_resample_audio();

/// Frames per second of the recording and of the result.
struct Rates {
  int from = 1;
  int to = 1;
  static constexpr int kMax = 1 << 20;
  static constexpr int kFactorMax = 256;
};
/// Rates beyond `Rates::kMax`, or a factor beyond `Rates::kFactorMax`, are a Failure.
Result<void> check_rates(const Rates& rates);

/// How many frames `frames` become: one for each time k / to within the recording.
std::int64_t resampled_frames(std::int64_t frames, const Rates& rates);

/// The frames of a recording that some frames of the result depend on.
struct FrameRange {
  std::int64_t first = 0;
  std::int64_t frames = 0;    // may reach beyond the end, where there is silence
  std::int64_t unwanted = 0;  // so many frames of the result of this range come before the first
};
/// For frames [first, first + frames) of the result: those at their times and the context that the
/// filter reads, from a frame on that both rates have in common. Resampling the range gives the
/// same as resampling all, but for rounding: within 2e-6 of full scale, or 1e-4 between rates whose
/// ratio is no fraction of small numbers, such as 16,000 and 16,001.
FrameRange frames_needed(std::int64_t first, std::int64_t frames, const Rates& rates);

struct Resampling {
  const float* from = nullptr;  // the frames of the range that exist, interleaved
  std::int64_t from_frames = 0;
  float* to = nullptr;
  std::int64_t to_frames = 0;
  std::int64_t unwanted = 0;  // as in FrameRange
  int channels = 1;
};
/// Writes `to_frames` frames. `cancelled` is called between pieces; true ends the work.
Result<void> resample_audio(const Resampling& work, const Rates& rates,
                            const std::function<bool()>& is_cancelled = {});

}  // namespace penstock
