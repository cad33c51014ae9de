#pragma once
// Images: chains of ops that run in one pass, from the file's bytes to the place in the batch.
//
//   dataset.map(image::decode().resize(64, 64).random_flip().random_brightness(0.2).to_float())
//
// What is decoded is what a crop needs; values are rounded once, at the end. Ops that change colour
// keep values between black and white, and mean the same for bytes and for floats.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <penstock/dataset.h>

namespace penstock::image {

struct DecodeOptions {
  int channels = 3;          // 1 gray, 3 RGB, 4 RGB and alpha, 0 as stored
  bool keep_16_bit = false;  // gives u16; otherwise all become u8
  bool fast_scale = false;   // a JPEG may be decoded smaller before a resize; pixels differ then
  std::uint64_t pixels_max = std::uint64_t{1} << 27;  // larger images are refused
  std::uint64_t side_max = 65'535;                    // of height and of width
  std::uint64_t bytes_max = std::uint64_t{1} << 30;   // of the file
  double time_max = 10;    // seconds of one decode, and again of the ops behind it
  std::string field = {};  // default: "image", or the only field there is
};
struct ResizeOptions {
  std::string filter = "bilinear";  // nearest, bilinear, bicubic, area
  bool antialias = true;            // as Pillow; false: as tf.image.resize
};
struct Range {
  double low = 0;
  double high = 1;
};
struct ResizedCropOptions {
  Range scale = {0.08, 1.0};      // area of the part, as a fraction of the image
  Range ratio = {0.75, 4.0 / 3};  // width over height of the part
  bool antialias = true;
};
struct PadOptions {
  std::int64_t top = 0;
  std::int64_t bottom = 0;
  std::int64_t left = 0;
  std::int64_t right = 0;
  double value = 0;  // 0 is black, 1 is white
};
struct FlipOptions {
  bool horizontal = true;
  bool vertical = false;
  double chance = 0.5;  // of each axis
};
struct JitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;
};
struct BlurOptions {
  Range sigma = {0.1, 2.0};  // pixels
  double chance = 1;
};
struct ErasingOptions {
  double chance = 0.5;
  Range scale = {0.02, 0.33};
  Range ratio = {0.3, 3.3};
  double value = 0;
};

/// A value; each op gives a longer chain. Wrong parameters are a ConfigError at once, ops that do
/// not fit each other when the chain is given to `Dataset::map`.
class Chain {
 public:
  // Geometry; sizes are height, then width
  [[nodiscard]] Chain resize(std::int64_t height, std::int64_t width,
                             const ResizeOptions& options = {}) const;
  /// The shorter side gets `size`; the shape stays.
  [[nodiscard]] Chain resize_short(std::int64_t size, const ResizeOptions& options = {}) const;
  [[nodiscard]] Chain crop(std::int64_t y, std::int64_t x, std::int64_t height,
                           std::int64_t width) const;
  [[nodiscard]] Chain center_crop(std::int64_t height, std::int64_t width) const;
  [[nodiscard]] Chain random_crop(std::int64_t height, std::int64_t width) const;
  [[nodiscard]] Chain random_resized_crop(std::int64_t height, std::int64_t width,
                                          const ResizedCropOptions& options = {}) const;
  [[nodiscard]] Chain pad(const PadOptions& options) const;
  [[nodiscard]] Chain random_flip(const FlipOptions& options = {}) const;
  /// Quarter turns against the clock.
  [[nodiscard]] Chain rotate90(std::int64_t turns = 1) const;
  [[nodiscard]] Chain random_rotate90() const;

  // Colour
  /// Adds up to `delta` of the range from black to white: 0.2 is 51 of 255.
  [[nodiscard]] Chain random_brightness(double delta) const;
  [[nodiscard]] Chain random_contrast(double low, double high) const;
  [[nodiscard]] Chain random_saturation(double low, double high) const;
  /// Up to `delta` of the colour circle.
  [[nodiscard]] Chain random_hue(double delta) const;
  [[nodiscard]] Chain grayscale(double chance = 1) const;
  [[nodiscard]] Chain color_jitter(const JitterOptions& options) const;
  [[nodiscard]] Chain gaussian_blur(const BlurOptions& options = {}) const;
  [[nodiscard]] Chain random_erasing(const ErasingOptions& options = {}) const;

  // Values
  /// Mean and std by channel, as fractions of white; gives f32.
  [[nodiscard]] Chain normalize(std::vector<double> mean = {0.485, 0.456, 0.406},
                                std::vector<double> std = {0.229, 0.224, 0.225}) const;
  /// f32, f16 or bf16 in which white is 1.
  [[nodiscard]] Chain to_float(Dtype dtype = Dtype::f32) const;
  [[nodiscard]] Chain to_bytes() const;
  /// CHW instead of HWC.
  [[nodiscard]] Chain channels_first() const;

  /// Random ops draw other numbers; default 0.
  [[nodiscard]] Chain seed(std::uint64_t seed) const;
  /// The op `word` with its arguments as a JSON object, for callers that have words and no types.
  [[nodiscard]] Chain step(const std::string& word, const std::string& arguments) const;

  operator OpCall() const;  // NOLINT: a chain is an op

 private:
  friend Chain of(std::string field);
  friend Chain decode(const DecodeOptions& options);
  struct Impl;
  explicit Chain(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// A chain that begins with encoded bytes: the format is told by content.
Chain decode(const DecodeOptions& options = {});
/// A chain that begins with pixels: u8, u16 or f32 (white is 1) of shape [height, width] or
/// [height, width, channels].
Chain of(std::string field = {});

/// The field of class numbers `field` becomes f32 vectors of length `classes`.
OpCall one_hot(std::int64_t classes, std::string field = "label");

struct MixOptions {
  double alpha = 0.2;  // of the Beta distribution the share is drawn from
  double chance = 1;   // of a sample to be mixed
  std::uint64_t seed = 0;
  std::string image = "image";  // f32 images
  std::string label = "label";  // f32 vectors, as one_hot makes them
};
/// After batch: each sample is mixed with a partner of the same global batch, labels alike (Zhang
/// et al., 2017). The partner is drawn by the sample's key, so that it does not depend on replicas.
OpCall mixup(const MixOptions& options = {});
/// The same by pasting a rectangle of the partner (Yun et al., 2019).
OpCall cutmix(const MixOptions& options = {.alpha = 1.0});

}  // namespace penstock::image
