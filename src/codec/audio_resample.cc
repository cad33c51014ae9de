#include "codec/audio_resample.h"

#ifdef PENSTOCK_SOXR
#include <soxr.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/cancelled.h"
#include "base/mutex.h"

namespace penstock {
namespace {

/// Frames at the lower rate that the filter of soxr's HQ reads on either side, and some more.
constexpr std::int64_t kContext = 256;

/// The rates without their common factor: `from` frames last as long as `to` frames of the result.
struct RateRatio {
  explicit RateRatio(const Rates& rates)
      : from(rates.from / std::gcd(rates.from, rates.to)),
        to(rates.to / std::gcd(rates.from, rates.to)) {}
  std::int64_t from;
  std::int64_t to;
};

}  // namespace

Result<void> check_rates(const Rates& rates) {
  const std::int64_t low = std::min(rates.from, rates.to);
  const std::int64_t high = std::max(rates.from, rates.to);
  if (low >= 1 && high <= Rates::kMax && high <= low * Rates::kFactorMax) return {};
  return Failure{.message = fmt::format("the recording has {} Hz, which is not resampled to {} Hz",
                                        rates.from, rates.to),
                 .remedy = fmt::format("rates up to {} Hz that differ by a factor up to {} are",
                                       Rates::kMax, Rates::kFactorMax)};
}

std::int64_t resampled_frames(std::int64_t frames, const Rates& rates) {
  const RateRatio ratio(rates);
  // In two parts, since a product of all frames might overflow.
  const std::int64_t rest = frames % ratio.from;
  return frames / ratio.from * ratio.to + (rest * ratio.to + ratio.from - 1) / ratio.from;
}

FrameRange frames_needed(std::int64_t first, std::int64_t frames, const Rates& rates) {
  const RateRatio ratio(rates);
  const auto time_of = [&](std::int64_t frame) {
    return frame / ratio.to * ratio.from + frame % ratio.to * ratio.from / ratio.to;
  };
  const std::int64_t context =
      kContext * std::max<std::int64_t>(1, (ratio.from + ratio.to - 1) / ratio.to);
  const std::int64_t blocks = std::max<std::int64_t>(0, time_of(first) - context) / ratio.from;
  const std::int64_t begin = blocks * ratio.from;
  const std::int64_t end = time_of(first + frames - 1) + 1 + context;
  return {.first = begin, .frames = end - begin, .unwanted = first - blocks * ratio.to};
}

#ifdef PENSTOCK_SOXR

namespace {

using Resampler = std::unique_ptr<soxr, decltype(&soxr_delete)>;

/// Tables for Fourier transforms are shared by all resamplers of the process, and libsoxr itself
/// protects them only if it was built with OpenMP, and not while they are created. Designing a
/// filter writes them. Only the engine "cr32s", the one for CPUs with SIMD, works without them.
Mutex& shared_tables() {
  static Mutex mutex;
  return mutex;
}

Resampler make_resampler(const Rates& rates, int channels, soxr_error_t& error) {
  const soxr_io_spec_t types = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t one_thread = soxr_runtime_spec(1);
  const Lock lock(shared_tables());
  return {soxr_create(rates.from, rates.to, static_cast<unsigned>(channels), &error, &types,
                      &quality, &one_thread),
          &soxr_delete};
}

/// Input and room for the next call; `used` and `done` are its results.
struct ResamplerPiece {
  const float* from = nullptr;
  std::size_t from_frames = 0;
  float* to = nullptr;
  std::size_t room = 0;
  std::size_t used = 0;
  std::size_t done = 0;
};

soxr_error_t process(soxr_t resampler, ResamplerPiece& piece) {
  return soxr_process(resampler, piece.from, piece.from_frames, &piece.used, piece.to, piece.room,
                      &piece.done);
}
soxr_error_t process_safely(soxr_t resampler, ResamplerPiece& piece) {
  if (std::string_view(soxr_engine(resampler)) == "cr32s") return process(resampler, piece);
  const Lock lock(shared_tables());
  return process(resampler, piece);
}

Failure refused(soxr_error_t error) {
  return Failure{.message = fmt::format("libsoxr cannot resample: {}", error)};
}

}  // namespace

bool can_resample_audio() {
  return true;
}

Result<void> resample_audio(const Resampling& work, const Rates& rates,
                            const std::function<bool()>& is_cancelled) {
  constexpr std::int64_t kPiece = 1 << 14;
  soxr_error_t error = nullptr;
  const Resampler resampler = make_resampler(rates, work.channels, error);
  if (!resampler) return refused(error);
  const std::vector<float> silence(static_cast<std::size_t>(kPiece * work.channels));
  std::vector<float> ignored(static_cast<std::size_t>(kPiece * work.channels));
  std::int64_t unwanted = work.unwanted;
  std::int64_t read = 0;
  for (std::int64_t written = 0; written < work.to_frames;) {
    if (is_cancelled && is_cancelled()) return cancelled(0);
    const std::int64_t there = std::min(work.from_frames - read, kPiece);
    const bool wanted = unwanted == 0;
    const std::int64_t missing = wanted ? work.to_frames - written : unwanted;
    ResamplerPiece piece{.from = there > 0 ? work.from + read * work.channels : silence.data(),
                         .from_frames = static_cast<std::size_t>(there > 0 ? there : kPiece),
                         .to = wanted ? work.to + written * work.channels : ignored.data(),
                         .room = static_cast<std::size_t>(std::min(missing, kPiece))};
    error = process_safely(resampler.get(), piece);
    if (error != nullptr) return refused(error);
    if (there > 0) read += static_cast<std::int64_t>(piece.used);
    (wanted ? written : unwanted) += (wanted ? 1 : -1) * static_cast<std::int64_t>(piece.done);
  }
  return {};
}

#else

bool can_resample_audio() {
  return false;
}

Result<void> resample_audio(const Resampling&, const Rates&, const std::function<bool()>&) {
  return Failure{.message = "this penstock was built without libsoxr",
                 .remedy = "install libsoxr and build again"};
}

#endif

}  // namespace penstock
