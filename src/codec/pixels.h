#pragma once
// What is done to pixels after any format has decoded them: orientation and channels.

#include "codec/codec.h"
#include "sample/scratch.h"

namespace penstock {

/// How stored pixels become seen ones: swap x and y if `transposed`, then count from the other end
/// where `from_right` (stored x) or `from_bottom` (stored y) say so.
struct Orientation {
  bool transposed = false;
  bool from_right = false;
  bool from_bottom = false;
};
/// Of an EXIF orientation, 1 to 8.
Orientation orientation_of(int orientation);

/// Where `seen` lies in the stored image, which is `width` x `height`.
Region stored_region(const Region& seen, Orientation turn, std::int64_t width, std::int64_t height);

/// Stored pixels as a person sees them; the same memory where there is nothing to turn.
Pixels turned(const Pixels& stored, Orientation turn, Scratch& scratch);

/// Room for an image of this size, with the slack that Pixels promises.
std::byte* allocate_rows(std::size_t stride, std::int64_t rows, Scratch& scratch);

/// 1, 2 (gray and alpha), 3 or 4 channels made of 1, 2, 3 or 4. Of dtypes other than u8 and u16
/// values are copied only: false where gray or alpha would have to be made up.
bool can_convert_channels(Dtype dtype, int from, int to);
Pixels with_channels(const Pixels& pixels, int channels, Scratch& scratch);

}  // namespace penstock
