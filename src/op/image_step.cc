// tested in src/op/image_ops_test.cc
// Arguments of image steps, and the list of all steps.
#include "op/image_step.h"

#include <fmt/ranges.h>

#include <cmath>

#include "penstock/error.h"

namespace penstock {

void refuse_step(const std::string& word, const std::string& message, const std::string& remedy) {
  throw ConfigError(fmt::format("{}: {}", word, message), {}, remedy);
}

void StepArguments::refuse(const std::string& message, const std::string& remedy) const {
  refuse_step(word_, message, remedy);
}

double StepArguments::number(const char* name) const {
  if (!at(name).is_number())
    refuse(fmt::format("{} must be a number, got {}", name, at(name).dump()));
  const double value = at(name).get<double>();
  if (!std::isfinite(value)) refuse(fmt::format("{} must be finite", name));
  return value;
}

std::int64_t StepArguments::integer(const char* name) const {
  const double value = number(name);
  if (value != std::floor(value) || std::abs(value) > 0x1p40)
    refuse(fmt::format("{} must be a whole number, got {}", name, value));
  return static_cast<std::int64_t>(value);
}

std::int64_t StepArguments::size(const char* name) const {
  const std::int64_t value = integer(name);
  if (value < 1 || value > (1 << 24))
    refuse(fmt::format("{} must be positive and at most {}, got {}", name, 1 << 24, value));
  return value;
}

bool StepArguments::flag(const char* name) const {
  if (!at(name).is_boolean())
    refuse(fmt::format("{} must be true or false, got {}", name, at(name).dump()));
  return at(name).get<bool>();
}

std::string StepArguments::text(const char* name) const {
  if (!at(name).is_string())
    refuse(fmt::format("{} must be a word, got {}", name, at(name).dump()));
  return at(name).get<std::string>();
}

std::vector<double> StepArguments::numbers(const char* name) const {
  if (!at(name).is_array()) return {number(name)};
  std::vector<double> values;
  for (const Json& value : at(name)) {
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      refuse(fmt::format("{} must be a list of numbers, got {}", name, at(name).dump()));
    values.push_back(value.get<double>());
  }
  return values;
}

std::pair<double, double> StepArguments::range(const char* name) const {
  const std::vector<double> values = numbers(name);
  if (values.size() != 2 || values[0] > values[1])
    refuse(fmt::format("{} must be two numbers, low and high, got {}", name, at(name).dump()));
  return {values[0], values[1]};
}

const std::vector<StepKind>& image_steps() {
  static const std::vector<StepKind> steps{
      decode_kind(),          resize_kind(),
      resize_short_kind(),    crop_kind(),
      center_crop_kind(),     pad_kind(),
      random_crop_kind(),     random_resized_crop_kind(),
      random_flip_kind(),     rotate90_kind(),
      random_rotate90_kind(), random_brightness_kind(),
      random_contrast_kind(), random_saturation_kind(),
      random_hue_kind(),      grayscale_kind(),
      color_jitter_kind(),    gaussian_blur_kind(),
      random_erasing_kind(),  normalize_kind(),
      to_float_kind(),        to_bytes_kind(),
      channels_first_kind(),
  };
  return steps;
}

const StepKind& image_step_kind(const std::string& word) {
  std::vector<std::string> words;
  for (const StepKind& kind : image_steps()) {
    if (kind.word == word) return kind;
    words.push_back(kind.word);
  }
  throw ConfigError(fmt::format("no image op \"{}\"; there are: {}", word, fmt::join(words, ", ")));
}

Json complete_arguments(const StepKind& kind, const Json& given) {
  if (!given.is_object()) refuse_step(kind.word, "its arguments must be named");
  Json values = Json::object();
  std::vector<std::string> names;
  for (const StepParameter& parameter : kind.parameters) {
    names.push_back(parameter.name);
    const auto found = given.find(parameter.name);
    if (found == given.end() && parameter.fallback.is_null())
      refuse_step(kind.word, fmt::format("{} is missing", parameter.name), parameter.about);
    values[parameter.name] = found == given.end() ? parameter.fallback : *found;
  }
  for (const auto& [name, value] : given.items())
    if (!values.contains(name))
      refuse_step(
          kind.word, fmt::format("there is no parameter \"{}\"", name),
          names.empty() ? "it takes none" : fmt::format("it takes {}", fmt::join(names, ", ")));
  return values;
}

Json pair_of(const image::Range& range) {
  return Json::array({range.low, range.high});
}

void expect_range(const std::string& word, const ImageSpec& in) {
  expect_channels_last(word, in);
  if (in.white == 0)
    refuse_step(word, "after normalize values have no range, which it needs",
                fmt::format("put {} before normalize", word));
}

void expect_channels_last(const std::string& word, const ImageSpec& in) {
  if (in.encoded) refuse_step(word, "the image is not decoded yet", "start with image::decode()");
  if (in.planes)
    refuse_step(word, "the channels are first already",
                fmt::format("put {} before channels_first", word));
}

void expect_color(const std::string& word, const ImageSpec& in) {
  expect_range(word, in);
  if (in.channels != 0 && in.channels < 3)
    refuse_step(word, fmt::format("images of {} channel(s) have no color", in.channels),
                "decode({.channels = 3})");
}

}  // namespace penstock
