#pragma once
// One image on its way through a chain of ops. Ops only record what to do; pixels are computed as
// late as possible, mostly once, at the end, row by row into the batch: only the region of the crop
// is decoded, and crop, resize, flip, color and conversion are one pass.

#include <chrono>
#include <optional>
#include <vector>

#include "codec/codec.h"
#include "codec/decode_budget.h"
#include "kernel/pixels.h"
#include "kernel/resample.h"
#include "penstock/result.h"
#include "source/context.h"

namespace penstock {

/// Operations on pixels in place, in order.
struct PointOp {
  enum class Kind : std::uint8_t { scale, clamp, saturate, hue };
  Kind kind = Kind::scale;
  Quad a = {};  // scale: factors; clamp: low, high; saturate: factor; hue: turn, white
  Quad b = {};  // scale: offsets
};

struct ResizeTo {
  std::int64_t height = 0;
  std::int64_t width = 0;
  Filter filter = Filter::bilinear;
  bool antialias = true;
};

/// Four floats per pixel, as returned by `pixels()`.
struct FloatImage {
  float* data = nullptr;
  std::int64_t height = 0;
  std::int64_t width = 0;
  [[nodiscard]] float* row(std::int64_t y) const { return data + 4 * width * y; }
};

/// Used by one thread; all memory comes from the scratch memory of `context` and is valid until the
/// caller's frame ends.
class Picture {
 public:
  /// `bytes` must stay valid; nothing is decoded yet.
  Picture(std::span<const std::byte> bytes, const ImageInfo& info, const DecodeRequest& request,
          const Context& context);
  Picture(const Pixels& pixels, const Context& context);

  [[nodiscard]] std::int64_t height() const;
  [[nodiscard]] std::int64_t width() const;
  [[nodiscard]] int channels() const { return channels_; }
  /// The value of white: 255, 65535 or 1.
  [[nodiscard]] float white() const { return white_; }
  void set_white(float white) { white_ = white; }
  /// True if values have no range.
  [[nodiscard]] bool normalized() const { return normalized_; }
  void set_normalized() { normalized_ = true; }
  [[nodiscard]] Scratch& scratch() const { return context_.scratch; }

  /// `region` must be inside the image.
  void crop(const Region& region);
  Result<void> resize(const ResizeTo& target);
  void flip(bool horizontal, bool vertical);
  void point(const PointOp& op) { points_.push_back(op); }
  /// Lets the decoder return fewer pixels; they may differ from a full decode.
  void allow_fast_scale() { fast_scale_ = true; }

  /// Operations after that time fail; by default it is `time_max` after the decode.
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }
  /// A Failure if the deadline has passed.
  [[nodiscard]] Result<void> check_time() const;

  /// Computes the pixels now, with all operations so far; the caller may change them.
  Result<FloatImage> pixels();
  /// Continues with other pixels, with the same number of channels.
  void replace(const FloatImage& image);

  /// Computes the pixels and writes them: rows of interleaved values, or one plane per channel.
  Result<void> store(std::byte* out, Dtype dtype, bool planes);

 private:
  template <typename Emit>
  Result<void> each_row(Emit emit);
  Result<Pixels> decoded(const Region& region);
  Result<void> prepare_resize(const ResizeTo& target);
  template <typename Emit>
  Result<void> resized(const ResizeTo& target, Emit emit);
  void finish_row(float* row) const;
  bool claim(std::uint64_t bytes) {
    return claim_.add(DecodeBudget::process(), bytes, [this] { return context_.cancelled(); });
  }
  [[nodiscard]] std::uint64_t decoded_bytes(const Region& region) const;
  void start_from(const FloatImage& image);

  Context context_;
  DecodeBudget::Claim claim_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::span<const std::byte> bytes_;  // empty if there are pixels
  ImageInfo info_;
  DecodeRequest request_;
  Pixels pixels_;      // 1 to 4 values per pixel, as decoded
  FloatImage floats_;  // or these, if data is set
  int channels_ = 3;
  Dtype dtype_ = Dtype::u8;  // of the source
  float white_ = 255;
  bool fast_scale_ = false;
  bool normalized_ = false;

  Region region_;  // of the source
  std::optional<ResizeTo> resize_;
  Region window_;  // of the result of the resize
  bool mirror_x_ = false;
  bool mirror_y_ = false;
  std::vector<PointOp> points_;
};

}  // namespace penstock
