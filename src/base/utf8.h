#pragma once

#include <cstddef>
#include <string_view>

namespace penstock {

/// True for well-formed UTF-8: shortest forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);
/// Bytes before the first one that is not; the size of well-formed text.
std::size_t utf8_prefix(std::string_view text);

}  // namespace penstock
