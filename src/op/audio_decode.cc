#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/cancelled.h"
#include "base/json.h"
#include "codec/audio.h"
#include "codec/audio_resample.h"
#include "codec/decode_budget.h"
#include "op/each_row.h"
#include "op/op.h"
#include "penstock/audio.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {
namespace {

using audio::AudioCrop;
using audio::AudioOptions;

constexpr const char* kWord = "audio.decode";
constexpr std::array kCrops{"random", "center", "start"};
constexpr int kChannelsMax = 1024;

[[noreturn]] void refuse(const std::string& what, const std::string& remedy = {}) {
  throw ConfigError(fmt::format("{}: {}", kWord, what), {}, remedy);
}

void check(const AudioOptions& options) {
  if (options.rate < 0 || options.rate > Rates::kMax)
    refuse(fmt::format("rate must be 1 to {} Hz, or 0 (as stored), got {}", Rates::kMax,
                       options.rate));
  if (options.channels < 0 || options.channels > kChannelsMax)
    refuse(fmt::format("channels must be 1 to {}, or 0 (as stored), got {}", kChannelsMax,
                       options.channels));
  if (options.frames < 0) refuse(fmt::format("frames must be positive, got {}", options.frames));
  if (options.values_max < 1) refuse("values_max must be positive");
  const auto values = static_cast<std::uint64_t>(options.frames);
  if (values > options.values_max / static_cast<std::uint64_t>(std::max(1, options.channels)))
    refuse(
        fmt::format("{} frames are more than values_max, {}", options.frames, options.values_max),
        "raise values_max, or request fewer frames");
  if (!can_decode_audio())
    refuse("this penstock was built without libsndfile", "install libsndfile and build again");
  if (options.rate > 0 && !can_resample_audio())
    refuse("this penstock was built without libsoxr, which rate needs",
           "install libsoxr and build again, or leave rate out");
}

/// Mixes `from` channels to one, or copies one channel to `to` of them.
void convert_channels(const float* in, int from, std::int64_t frames, int to, float* out) {
  for (std::int64_t frame = 0; frame < frames; ++frame) {
    const float* const values = in + frame * from;
    double sum = 0;
    for (int channel = 0; channel < from; ++channel) sum += static_cast<double>(values[channel]);
    std::fill_n(out + frame * to, to, static_cast<float>(sum / from));
  }
}

/// How a recording becomes one row.
struct RowPlan {
  std::int64_t first = 0;   // frame of the whole recording, after resampling
  std::int64_t frames = 0;  // from there on
  std::int64_t padded = 0;  // frames of the row: zeros follow
  int channels = 1;
  Rates rates = {};
  FrameRange range = {};  // the frames to decode

  [[nodiscard]] bool resampled() const { return rates.from != rates.to; }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(padded) * static_cast<std::size_t>(channels) * sizeof(float);
  }
};

class AudioDecode final : public Op {
 public:
  explicit AudioDecode(AudioOptions options) : options_(std::move(options)) { check(options_); }

  [[nodiscard]] std::string word() const override { return "audio_decode"; }
  [[nodiscard]] std::string describe() const override {
    std::string text = options_.path;
    const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
    if (options_.rate > 0) add(fmt::format("rate={}", options_.rate));
    if (options_.channels != 1) add(fmt::format("channels={}", options_.channels));
    if (options_.frames > 0) add(fmt::format("frames={}, crop={}", options_.frames, crop_name()));
    if (random()) add(fmt::format("seed={}", options_.seed));
    return fmt::format("{}({})", kWord, text);
  }
  [[nodiscard]] Json arguments() const override {
    return {{"path", options_.path},         {"rate", options_.rate},
            {"channels", options_.channels}, {"frames", options_.frames},
            {"crop", crop_name()},           {"pad", options_.pad},
            {"seed", options_.seed},         {"values_max", options_.values_max}};
  }
  [[nodiscard]] bool random() const override {
    return options_.frames > 0 && options_.crop == AudioCrop::random;
  }
  [[nodiscard]] std::uint64_t seed() const override { return options_.seed; }

  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    if (!input.known) return input;
    ElementSpec spec = input;
    FieldSpec& field = spec.fields[index_in(input)];
    if (field.dtype != Dtype::bytes)
      refuse(
          fmt::format("field \"{}\" is {}, not the bytes of a file", options_.path, field.text()),
          "start with audio_folder or audio_files, or read_file for paths");
    field.dtype = Dtype::f32;
    field.shape = shape_of(options_.frames > 0 ? options_.frames : kUnknown,
                           options_.channels > 0 ? options_.channels : kUnknown);
    return spec;
  }

  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    const std::size_t index = index_in(*in.spec);
    copy_other_columns(in, out, index);
    return each_row(in, context, [&](std::size_t row) {
      return decode_row(in.columns[index].tensors[row].raw(), out.columns[index], row, context);
    });
  }

 private:
  [[nodiscard]] std::size_t index_in(const ElementSpec& spec) const {
    return field_index(kWord, options_.path, spec);
  }
  [[nodiscard]] std::string crop_name() const {
    return kCrops[static_cast<std::size_t>(options_.crop)];
  }
  /// One channel is a vector, whatever the file has.
  [[nodiscard]] Shape shape_of(std::int64_t frames, std::int64_t channels) const {
    return options_.channels == 1 ? Shape{frames} : Shape{frames, channels};
  }

  [[nodiscard]] Result<int> channels_of(const AudioInfo& info) const {
    if (options_.channels == 0) return info.channels;
    if (options_.channels == 1 || info.channels == 1 || info.channels == options_.channels)
      return options_.channels;
    return Failure{.message = fmt::format("the recording has {} channels, not {}", info.channels,
                                          options_.channels),
                   .remedy = "channels=1 takes the mean of any number of channels"};
  }

  /// Chooses the frames of the row, of `total` frames.
  Result<void> choose(std::int64_t total, std::size_t row, const OpContext& context,
                      RowPlan& plan) const {
    const std::int64_t wanted = options_.frames > 0 ? options_.frames : total;
    plan.frames = std::min(wanted, total);
    plan.padded = wanted;
    if (wanted > total && !options_.pad)
      return Failure{
          .message = fmt::format("the recording has {} frames, {} are needed", total, wanted),
          .remedy = "set pad to fill such recordings with zeros"};
    const std::int64_t longer = total - plan.frames;
    if (longer == 0 || options_.crop == AudioCrop::start) return {};
    plan.first = longer / 2;
    if (options_.crop == AudioCrop::random) {
      Rng rng = (*context.rng)(row);
      plan.first = static_cast<std::int64_t>(rng.integer(static_cast<std::uint64_t>(longer) + 1));
    }
    return {};
  }

  /// Whether so many values may be held in memory.
  [[nodiscard]] Result<void> check_values(std::int64_t frames, int channels) const {
    if (static_cast<std::uint64_t>(frames) <=
        options_.values_max / static_cast<std::uint64_t>(channels))
      return {};
    return Failure{.message = fmt::format("the recording claims {} frames of {} channel(s), more "
                                          "than the limit of {} values",
                                          frames, channels, options_.values_max),
                   .remedy = "request fewer with frames, or raise values_max"};
  }

  [[nodiscard]] Result<RowPlan> plan_row(const AudioInfo& info, std::size_t row,
                                         const OpContext& context) const {
    RowPlan plan;
    plan.rates = {.from = info.rate, .to = options_.rate > 0 ? options_.rate : info.rate};
    if (plan.resampled())
      if (auto done = check_rates(plan.rates); !done) return std::move(done.failure());
    const auto channels = channels_of(info);
    if (!channels) return channels.failure();
    plan.channels = *channels;
    const std::int64_t total =
        plan.resampled() ? resampled_frames(info.frames, plan.rates) : info.frames;
    if (auto done = choose(total, row, context, plan); !done) return std::move(done.failure());
    if (auto done = check_values(plan.padded, plan.channels); !done)
      return std::move(done.failure());
    if (plan.frames == 0) return plan;
    plan.range = plan.resampled() ? frames_needed(plan.first, plan.frames, plan.rates)
                                  : FrameRange{.first = plan.first, .frames = plan.frames};
    plan.range.frames = std::min(plan.range.frames, info.frames - plan.range.first);
    if (auto done = check_values(plan.range.frames, info.channels); !done)
      return std::move(done.failure());
    return plan;
  }

  Result<void> decode_row(std::span<const std::byte> bytes, const Column& column, std::size_t row,
                          const OpContext& context) const {
    const auto is_cancelled = [&context] { return context.cancelled(); };
    auto file = AudioFile::open(
        bytes, {.counted_frames_max = options_.values_max, .cancelled = is_cancelled});
    if (!file) return std::move(file.failure());
    const auto plan = plan_row(file->info(), row, context);
    if (!plan) return plan.failure();
    const std::size_t size = (*plan).bytes();
    DecodeBudget::Claim claim;
    const auto decoded = static_cast<std::uint64_t>((*plan).range.frames) *
                         static_cast<std::uint64_t>(file->info().channels) * sizeof(float);
    if (!claim.add(DecodeBudget::process(), size + decoded, is_cancelled)) return cancelled(0);
    if (column.dense()) {
      if (size != column.row_bytes)
        return Failure{
            fmt::format("the result has {} bytes, the plan was {}", size, column.row_bytes)};
      return write(*file, *plan, reinterpret_cast<float*>(column.data + row * size), context);
    }
    const std::shared_ptr<float[]> memory(new float[size / sizeof(float) + 1]);
    if (auto done = write(*file, *plan, memory.get(), context); !done) return done;
    column.tensors[row] =
        Tensor::view(Dtype::f32, shape_of((*plan).padded, (*plan).channels),
                     {reinterpret_cast<const std::byte*>(memory.get()), size}, memory);
    return {};
  }

  /// Writes the frames of the row, and zeros behind them.
  static Result<void> write(AudioFile& file, const RowPlan& plan, float* out,
                            const OpContext& context) {
    float* const end = out + plan.frames * plan.channels;
    std::fill(end, out + plan.padded * plan.channels, 0.0F);
    if (plan.frames == 0) return {};
    if (auto done = decode(file, plan, out, context); !done) return done;
    const float* const wrong =
        std::find_if_not(out, end, [](float value) { return std::isfinite(value); });
    if (wrong == end) return {};
    return Failure{.message = fmt::format("frame {} of the recording is {}",
                                          plan.first + (wrong - out) / plan.channels, *wrong),
                   .remedy = "write the file again without NaN and infinity"};
  }

  static Result<void> decode(AudioFile& file, const RowPlan& plan, float* out,
                             const OpContext& context) {
    const int stored = file.info().channels;
    const auto memory = [&](int channels) {
      return context.scratch.array<float>(static_cast<std::size_t>(plan.range.frames) *
                                          static_cast<std::size_t>(channels));
    };
    float* const mixed = plan.resampled() ? memory(plan.channels) : out;
    float* const decoded = stored == plan.channels ? mixed : memory(stored);
    if (auto done = file.read(plan.range.first, plan.range.frames, decoded); !done) return done;
    if (decoded != mixed)
      convert_channels(decoded, stored, plan.range.frames, plan.channels, mixed);
    if (!plan.resampled()) return {};
    return resample_audio({.from = mixed,
                           .from_frames = plan.range.frames,
                           .to = out,
                           .to_frames = plan.frames,
                           .unwanted = plan.range.unwanted,
                           .channels = plan.channels},
                          plan.rates, [&context] { return context.cancelled(); });
  }

  AudioOptions options_;
};

AudioCrop crop_of(const std::string& name) {
  const auto* const found = std::ranges::find(kCrops, name);
  if (found != kCrops.end()) return static_cast<AudioCrop>(found - kCrops.begin());
  refuse(fmt::format("there is no crop \"{}\"", name), "use random, center or start");
}

}  // namespace

std::shared_ptr<const Op> make_audio_decode(const Json& arguments) {
  if (!arguments.contains("path") || !arguments.at("path").is_string())
    refuse("it needs the name of a field, or \"\" for elements without names");
  const auto number = [&]<typename T>(const char* name, T fallback) {
    return arguments.contains(name) ? whole_number<T>(arguments.at(name)) : fallback;
  };
  AudioOptions options;
  options.path = arguments.at("path").get<std::string>();
  options.rate = number("rate", options.rate);
  options.channels = number("channels", options.channels);
  options.frames = number("frames", options.frames);
  options.crop = crop_of(arguments.value("crop", std::string(kCrops[0])));
  options.pad = arguments.value("pad", options.pad);
  options.seed = number("seed", options.seed);
  options.values_max = number("values_max", options.values_max);
  return std::make_shared<AudioDecode>(std::move(options));
}

OpCall audio::decode(const AudioOptions& options) {
  return OpCall(std::make_shared<AudioDecode>(options));
}

}  // namespace penstock
