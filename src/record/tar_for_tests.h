#pragma once
// Tar files of any kind, also wrong ones, header by header.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::for_tests {

struct TarEntry {
  std::string name;
  std::string content = {};
  char type = '0';
  std::string prefix = {};
  std::string magic = std::string("ustar\00000", 8);  // "" is the oldest form, "ustar  " GNU tar
  std::string size_field = {};                        // instead of the size of the content
};

inline void set_tar_checksum(std::string& block) {
  std::fill_n(block.begin() + 148, 8, ' ');
  unsigned sum = 0;
  for (const char byte : std::string_view(block).substr(0, 512))
    sum += static_cast<unsigned char>(byte);
  block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

inline void pad_tar(std::string& text) {
  text.resize((text.size() + 511) / 512 * 512);
}

inline std::string tar_entry(const TarEntry& entry) {
  std::string block(512, '\0');
  const auto put = [&block](std::size_t at, std::string_view text) {
    std::ranges::copy(text, block.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, std::string_view(entry.name).substr(0, 100));
  put(100, "0000644");
  put(124, entry.size_field.empty() ? fmt::format("{:011o}", entry.content.size())
                                    : entry.size_field.substr(0, 12));
  put(136, "00000000000");
  block[156] = entry.type;
  put(257, entry.magic);
  put(345, std::string_view(entry.prefix).substr(0, 155));
  set_tar_checksum(block);
  block += entry.content;
  pad_tar(block);
  return block;
}

inline std::string tar_file(std::string name, std::string content) {
  return tar_entry({.name = std::move(name), .content = std::move(content)});
}

inline std::string pax_line(std::string_view key, std::string_view value) {
  std::size_t length = key.size() + value.size() + 4;
  while (fmt::format("{} {}={}\n", length, key, value).size() != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

/// An extended header for the member after it.
inline std::string pax_entry(const std::string& lines, char type = 'x') {
  return tar_entry({.name = "./PaxHeaders/x", .content = lines, .type = type});
}

/// A name of any length, as GNU tar writes it.
inline std::string gnu_long_name(const std::string& name) {
  return tar_entry({.name = "././@LongLink",
                    .content = name + std::string(1, '\0'),
                    .type = 'L',
                    .magic = "ustar  "});
}

inline std::string tar_end() {
  return std::string(1024, '\0');
}

}  // namespace penstock::for_tests
