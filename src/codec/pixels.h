#pragma once
// Processing of pixels after any format has decoded them: orientation and channels.

#include "codec/codec.h"
#include "sample/scratch.h"

namespace penstock {

/// How stored pixels become displayed ones: swap x and y if `transposed`, then reverse stored x if
/// `from_right` and stored y if `from_bottom`.
struct Orientation {
  bool transposed = false;
  bool from_right = false;
  bool from_bottom = false;
};
/// From an EXIF orientation, 1 to 8.
Orientation orientation_of(int orientation);

/// The region of the stored image, which is `width` x `height`, that is displayed as `seen`.
Region stored_region(const Region& seen, Orientation turn, std::int64_t width, std::int64_t height);

/// Stored pixels as displayed; the same memory if nothing changes.
Pixels turned(const Pixels& stored, Orientation turn, Scratch& scratch);

/// Memory for an image of this size, with the slack that Pixels promises.
std::byte* allocate_rows(std::size_t stride, std::int64_t rows, Scratch& scratch);

/// Converts 1, 2 (gray and alpha), 3 or 4 channels to 1, 2, 3 or 4. For dtypes other than u8 and
/// u16 values are only copied: false if gray or alpha would have to be computed.
bool can_convert_channels(Dtype dtype, int from, int to);
Pixels with_channels(const Pixels& pixels, int channels, Scratch& scratch);

}  // namespace penstock
