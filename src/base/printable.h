#pragma once
// File names are bytes; people and JSON need text.

#include <string>
#include <string_view>

namespace penstock {

/// `bytes` as UTF-8 text on one line: invalid UTF-8, control characters and backslashes are escaped
/// as \xNN and \\, so that two names never look the same.
std::string printable(std::string_view bytes);

}  // namespace penstock
