#pragma once
// Which libraries read the images.

#include <string>

namespace penstock {

/// "libjpeg-turbo 2.1.5, libpng 1.6.39, ...": whatever this build carries, for bug reports.
std::string codec_versions();

}  // namespace penstock
