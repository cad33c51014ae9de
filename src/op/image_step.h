#pragma once
// The ops of an image chain. Each has its own file with its name, its parameters, the spec of its
// result as far as that is known before running, and its effect on one picture.

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "op/picture.h"
#include "penstock/image.h"
#include "penstock/result.h"
#include "penstock/rng.h"

namespace penstock {

/// Facts about images that are known before they are read.
struct ImageSpec {
  std::int64_t height = kUnknown;
  std::int64_t width = kUnknown;
  int channels = 3;  // 0: as stored
  Dtype dtype = Dtype::u8;
  double white = 255;    // the value of white; 0 if values have no range
  bool planes = false;   // channels first
  bool encoded = false;  // not decoded yet
};

class ImageStep {
 public:
  virtual ~ImageStep() = default;
  [[nodiscard]] virtual bool random() const { return false; }
  /// Throws ConfigError if the step cannot work on such images, or would do nothing.
  [[nodiscard]] virtual ImageSpec output(const ImageSpec& in) const = 0;
  /// For the step that decodes: the request to the codec.
  [[nodiscard]] virtual const DecodeRequest* request() const { return nullptr; }
  /// Thread-safe; called any number of times.
  virtual Result<void> apply(Picture& picture, Rng& rng) const = 0;
};

/// One parameter of a step. Without a default (null) it is required.
struct StepParameter {
  std::string name;
  Json fallback;
  std::string about;
};

/// The arguments of a step, complete and with the right types.
class StepArguments {
 public:
  StepArguments(std::string word, Json values)
      : word_(std::move(word)), values_(std::move(values)) {}
  [[nodiscard]] double number(const char* name) const;
  [[nodiscard]] std::int64_t integer(const char* name) const;
  [[nodiscard]] bool flag(const char* name) const;
  [[nodiscard]] std::string text(const char* name) const;
  /// A list of numbers; a single number counts as a list of one.
  [[nodiscard]] std::vector<double> numbers(const char* name) const;
  /// Two numbers, low and high, in order.
  [[nodiscard]] std::pair<double, double> range(const char* name) const;
  /// A number above 0.
  [[nodiscard]] std::int64_t size(const char* name) const;

  /// Throws a ConfigError about this step.
  [[noreturn]] void refuse(const std::string& message, const std::string& remedy = {}) const;

 private:
  [[nodiscard]] const Json& at(const char* name) const { return values_.at(name); }
  std::string word_;
  Json values_;
};

struct StepKind {
  std::string word;
  std::string about;
  std::vector<StepParameter> parameters;
  std::function<std::unique_ptr<const ImageStep>(const StepArguments&)> make;
};

/// All steps, by name.
const std::vector<StepKind>& image_steps();
/// Throws ConfigError that lists the existing steps.
const StepKind& image_step_kind(const std::string& word);
/// `given` with the defaults filled in; throws ConfigError for missing or unknown arguments.
Json complete_arguments(const StepKind& kind, const Json& given);

/// A range of an options struct as the argument of a step. Defaults are written once, in the
/// structs of penstock/image.h: the fallbacks of the parameters are taken from there.
Json pair_of(const image::Range& range);

/// ConfigErrors that several steps share.
[[noreturn]] void refuse_step(const std::string& word, const std::string& message,
                              const std::string& remedy = {});
/// Color ops need values with a range.
void expect_range(const std::string& word, const ImageSpec& in);
void expect_channels_last(const std::string& word, const ImageSpec& in);
void expect_color(const std::string& word, const ImageSpec& in);

StepKind decode_kind();
StepKind resize_kind();
StepKind resize_short_kind();
StepKind crop_kind();
StepKind center_crop_kind();
StepKind pad_kind();
StepKind random_crop_kind();
StepKind random_resized_crop_kind();
StepKind random_flip_kind();
StepKind rotate90_kind();
StepKind random_rotate90_kind();
StepKind random_brightness_kind();
StepKind random_contrast_kind();
StepKind random_saturation_kind();
StepKind random_hue_kind();
StepKind grayscale_kind();
StepKind color_jitter_kind();
StepKind gaussian_blur_kind();
StepKind random_erasing_kind();
StepKind normalize_kind();
StepKind to_float_kind();
StepKind to_bytes_kind();
StepKind channels_first_kind();

}  // namespace penstock
