#pragma once
// Numbers as people read them.

#include <cstdint>
#include <string>

namespace penstock {

/// The text with a space for each control character: a file written by somebody else must not
/// control the terminal. With `keep_lines`, line feeds stay.
std::string without_controls(std::string text, bool keep_lines = false);
/// "38 %", "0.4 %"
std::string percent_text(double part);
/// "1.24 s", "35 ms", "2 min 5 s"
std::string seconds_text(double seconds);
/// "1.2 GB"
std::string bytes_text(double bytes);
/// "12,345"
std::string number_text(std::uint64_t number);
/// "12,345" or "3.4" or "0.02"
std::string rate_text(double rate);
/// "1 thread", "2 threads"
std::string counted_text(std::uint64_t count, const char* what);
/// The title of an op without its number and arguments: "parse" for `map "parse" (Sample) ->
/// Sample#3`, "range" for "range(0, 100, 1)".
std::string plain_name(const std::string& title);

}  // namespace penstock
