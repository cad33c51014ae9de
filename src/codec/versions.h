#pragma once
// The libraries that decode the images.

#include <string>

namespace penstock {

/// "libjpeg-turbo 2.1.5, libpng 1.6.39, ...": what this build contains, for bug reports.
std::string codec_versions();

}  // namespace penstock
