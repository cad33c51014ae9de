#pragma once
// Images: chains of ops that run in one pass, from the bytes of the file into the batch.
//
//   dataset.map(image::decode().resize(64, 64).random_flip().random_brightness(0.2).to_float())
//
// Only the region that a crop needs is decoded; values are rounded once, at the end. Ops that
// change color keep values between black and white, and have the same effect on bytes and on
// floats.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <penstock/op.h>

namespace penstock::image {

struct DecodeOptions {
  int channels = 3;          // 1 gray, 3 RGB, 4 RGB and alpha, 0 as stored
  bool keep_16_bit = false;  // returns u16; otherwise all become u8
  bool fast_scale =
      false;  // a JPEG may be decoded at a smaller scale before a resize; pixels then differ
  std::uint64_t pixels_max = std::uint64_t{1} << 27;  // larger images fail
  std::uint64_t side_max = 65'535;                    // of height and of width
  std::uint64_t bytes_max = std::uint64_t{1} << 30;   // of the file
  double time_max = 10;    // seconds for decoding, and again for the ops after it
  std::string field = {};  // default: "image", or the only field
};
struct ResizeOptions {
  std::string filter = "bilinear";  // nearest, bilinear, bicubic, area
  bool antialias = true;            // like Pillow; false: like tf.image.resize
};
struct Range {
  double low = 0;
  double high = 1;
};
struct ResizedCropOptions {
  Range scale = {0.08, 1.0};      // area of the crop, as a fraction of the image
  Range ratio = {0.75, 4.0 / 3};  // width over height of the crop
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

/// An immutable value: each op returns a longer chain. Wrong parameters throw ConfigError at once;
/// `Dataset::map` throws it for ops that cannot follow each other.
class Chain {
 public:
  // Geometry; sizes are height, then width
  [[nodiscard]] Chain resize(std::int64_t height, std::int64_t width,
                             const ResizeOptions& options = {}) const;
  /// Scales the shorter side to `size` and keeps the aspect ratio.
  [[nodiscard]] Chain resize_short(std::int64_t size, const ResizeOptions& options = {}) const;
  [[nodiscard]] Chain crop(std::int64_t y, std::int64_t x, std::int64_t height,
                           std::int64_t width) const;
  [[nodiscard]] Chain center_crop(std::int64_t height, std::int64_t width) const;
  [[nodiscard]] Chain random_crop(std::int64_t height, std::int64_t width) const;
  [[nodiscard]] Chain random_resized_crop(std::int64_t height, std::int64_t width,
                                          const ResizedCropOptions& options = {}) const;
  [[nodiscard]] Chain pad(const PadOptions& options) const;
  [[nodiscard]] Chain random_flip(const FlipOptions& options = {}) const;
  /// Rotates counterclockwise by quarter turns.
  [[nodiscard]] Chain rotate90(std::int64_t turns = 1) const;
  [[nodiscard]] Chain random_rotate90() const;

  // Color
  /// Adds or subtracts up to `delta` of the range from black to white: 0.2 is 51 of 255.
  [[nodiscard]] Chain random_brightness(double delta) const;
  [[nodiscard]] Chain random_contrast(double low, double high) const;
  [[nodiscard]] Chain random_saturation(double low, double high) const;
  /// Rotates the hue by up to `delta` of the color circle.
  [[nodiscard]] Chain random_hue(double delta) const;
  [[nodiscard]] Chain grayscale(double chance = 1) const;
  [[nodiscard]] Chain color_jitter(const JitterOptions& options) const;
  [[nodiscard]] Chain gaussian_blur(const BlurOptions& options = {}) const;
  [[nodiscard]] Chain random_erasing(const ErasingOptions& options = {}) const;

  // Values
  /// Mean and std per channel, as fractions of white; returns f32.
  [[nodiscard]] Chain normalize(std::vector<double> mean = {0.485, 0.456, 0.406},
                                std::vector<double> std = {0.229, 0.224, 0.225}) const;
  /// Converts to f32, f16 or bf16, with white as 1.
  [[nodiscard]] Chain to_float(Dtype dtype = Dtype::f32) const;
  [[nodiscard]] Chain to_bytes() const;
  /// CHW instead of HWC.
  [[nodiscard]] Chain channels_first() const;

  /// The seed of the random ops; default 0.
  [[nodiscard]] Chain seed(std::uint64_t seed) const;
  /// Adds the op named `word`, with its arguments as a JSON object, for callers without C++ types.
  [[nodiscard]] Chain step(const std::string& word, const std::string& arguments) const;

  operator OpCall() const;  // NOLINT: a chain is an op

 private:
  friend Chain of(std::string field);
  friend Chain decode(const DecodeOptions& options);
  struct Impl;
  explicit Chain(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// A chain that starts with encoded bytes. The format is detected from the content.
Chain decode(const DecodeOptions& options = {});
/// A chain that starts with pixels: u8, u16 or f32 (white is 1) of shape [height, width] or
/// [height, width, channels].
Chain of(std::string field = {});

struct EncodeOptions {
  std::string format = "jpeg";  // or "png"
  int quality = 90;             // of a JPEG, 1 to 100
  std::string field = "image";  // u8 of shape [height, width, channels]
};
/// Encodes the pixels in a field: JPEG with 1 or 3 channels, PNG with up to 4. For writing files.
OpCall encode(const EncodeOptions& options = {});

/// Replaces the class numbers in `field` by f32 vectors of length `classes`.
OpCall one_hot(std::int64_t classes, std::string field = "label");

struct MixOptions {
  double alpha = 0.2;  // of the Beta distribution of the mixing ratio
  double chance = 1;   // that a sample is mixed
  std::uint64_t seed = 0;
  std::string image = "image";  // f32 images
  std::string label = "label";  // f32 vectors, as from one_hot
};
/// After batch: mixes each sample and its label with a partner from the same global batch (Zhang et
/// al., 2017). The partner is drawn with the sample's key, so it does not depend on the replicas.
OpCall mixup(const MixOptions& options = {});
/// The same, but pastes a rectangle of the partner (Yun et al., 2019).
OpCall cutmix(const MixOptions& options = {.alpha = 1.0});

}  // namespace penstock::image
