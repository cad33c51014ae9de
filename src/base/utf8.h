#pragma once

#include <string_view>

namespace penstock {

/// True for well-formed UTF-8: shortest forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace penstock
