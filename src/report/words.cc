#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace penstock {

namespace {

/// Damaged traces have any numbers.
double in_range(double value) {
  constexpr double kMost = 1e17;
  return value >= 0 ? std::min(value, kMost) : 0;  // 0 if it is not a number
}

}  // namespace

std::string without_controls(std::string text, bool keep_lines) {
  for (char& c : text) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    if (control && !(keep_lines && c == '\n')) c = ' ';
  }
  return text;
}

std::string percent_text(double part) {
  part = in_range(part);
  const double percent = 100 * part;
  if (percent > 0 && percent < 0.95) return fmt::format("{:.1f} %", percent);
  return fmt::format("{:.0f} %", percent);
}

std::string seconds_text(double seconds) {
  seconds = in_range(seconds);
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.01) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  const auto minutes = static_cast<std::uint64_t>(seconds / 60);
  if (minutes < 120)
    return fmt::format("{} min {:.0f} s", minutes, seconds - 60 * static_cast<double>(minutes));
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

std::string bytes_text(double bytes) {
  bytes = in_range(bytes);
  constexpr std::array<const char*, 5> kUnits{"B", "KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 || bytes >= 9.95 ? fmt::format("{:.0f} {}", bytes, kUnits.at(unit))
                                    : fmt::format("{:.1f} {}", bytes, kUnits.at(unit));
}

std::string number_text(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string rate_text(double rate) {
  rate = in_range(rate);
  if (rate >= 100) return number_text(static_cast<std::uint64_t>(std::llround(rate)));
  return rate >= 1 ? fmt::format("{:.1f}", rate) : fmt::format("{:.2f}", rate);
}

std::string counted_text(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", number_text(count), what, count == 1 ? "" : "s");
}

std::string plain_name(const std::string& title) {
  constexpr std::string_view kMap = "map \"";
  if (title.starts_with(kMap)) {
    const std::size_t end = title.find('"', kMap.size());
    if (end != std::string::npos && end > kMap.size())
      return title.substr(kMap.size(), end - kMap.size());
  }
  std::string name;
  int depth = 0;
  for (const char c : title) {
    if (c == '#' || (c == ',' && depth == 0)) break;
    if (c == '(') ++depth;
    if (depth == 0 && !(c == ' ' && name.ends_with(' '))) name += c;
    if (c == ')') depth = std::max(0, depth - 1);
  }
  if (const std::size_t arrow = name.find(" -> "); arrow != std::string::npos) name.resize(arrow);
  while (name.ends_with(' ')) name.pop_back();
  return name.empty() ? title : name;
}

}  // namespace penstock
