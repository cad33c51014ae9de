// tested in src/record/tar_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "record/tar.h"
#include "record/tar_header.h"

namespace penstock {
namespace {

constexpr std::uint64_t kOctalEnd = std::uint64_t{1} << 33;  // eleven digits

void append_padding(std::string& archive, std::size_t bytes) {
  archive.append(static_cast<std::size_t>(tar_padded(bytes)) - bytes, '\0');
}

/// A length that counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (rest + fmt::formatted_size("{}", length) != length)
    length = rest + fmt::formatted_size("{}", length);
  return fmt::format("{} {}={}\n", length, key, value);
}

/// Fields as POSIX.1-1988 places them: of no owner, and as old as the epoch.
void append_header(std::string& archive, std::string_view prefix, std::string_view name,
                   std::uint64_t content_bytes, char type) {
  std::array<char, kTarBlock> block{};
  const auto put = [&block](std::size_t at, std::string_view text) {
    std::ranges::copy(text, block.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", content_bytes < kOctalEnd ? content_bytes : 0));
  put(136, "00000000000");
  put(148, "        ");
  block[156] = type;
  put(257, "ustar");
  put(263, "00");
  put(329, "0000000");
  put(337, "0000000");
  put(345, prefix);
  unsigned sum = 0;
  for (const char byte : block) sum += static_cast<unsigned char>(byte);
  put(148, fmt::format("{:06o}", sum));
  block[154] = '\0';
  archive.append(block.data(), block.size());
}

}  // namespace

void append_tar_member(std::string& archive, std::string_view name, std::string_view content) {
  PENSTOCK_CHECK(!name.empty() && name.find('\0') == std::string_view::npos);
  constexpr std::size_t kName = 100;
  constexpr std::size_t kPrefix = 155;
  std::string_view prefix;
  std::string_view rest = name;
  if (name.size() > kName) {
    // As much as fits may stand in front of a slash.
    const std::size_t slash = name.rfind('/', kPrefix);
    if (slash != std::string_view::npos && slash != 0 && slash + 1 != name.size() &&
        name.size() - slash - 1 <= kName) {
      prefix = name.substr(0, slash);
      rest = name.substr(slash + 1);
    }
  }
  std::string pax;
  if (rest.size() > kName) pax += pax_record("path", name);
  if (content.size() >= kOctalEnd) pax += pax_record("size", fmt::format("{}", content.size()));
  if (!pax.empty()) {
    append_header(archive, "", "././@PaxHeader", pax.size(), 'x');
    archive += pax;
    append_padding(archive, pax.size());
  }
  append_header(archive, prefix, rest.substr(0, kName), content.size(), '0');
  archive += content;
  append_padding(archive, content.size());
}

void append_tar_end(std::string& archive) {
  archive.append(2 * kTarBlock, '\0');
}

}  // namespace penstock
