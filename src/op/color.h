#pragma once
// Color changes shared by several steps. Values stay between black and white.

#include "op/picture.h"

namespace penstock {

/// Adds `delta` of the range from black to white.
void add_brightness(Picture& picture, double delta);
/// Moves values away from the image's mean gray (factor above 1) or toward it.
Result<void> scale_contrast(Picture& picture, double factor);
void scale_saturation(Picture& picture, double factor);
/// Rotates the hue by `turn` of the color circle.
void turn_hue(Picture& picture, double turn);

}  // namespace penstock
