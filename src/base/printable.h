#pragma once
// File names are bytes; people and JSON want text.

#include <string>
#include <string_view>

namespace penstock {

/// `bytes` as UTF-8 text on one line: what is not UTF-8, control characters and backslashes are
/// written as \xNN and \\, so that two names never look alike.
std::string printable(std::string_view bytes);

}  // namespace penstock
