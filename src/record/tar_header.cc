#include "record/tar_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/check.h"
#include "base/printable.h"
#include "record/unsafe_path.h"

namespace penstock {
namespace {

// POSIX.1-1988 (ustar); the sparse fields are those of GNU tar.
constexpr std::size_t kNameBytes = 100;
constexpr std::size_t kSize = 124;
constexpr std::size_t kChecksum = 148;
constexpr std::size_t kType = 156;
constexpr std::size_t kMagic = 257;
constexpr std::size_t kPrefix = 345;
constexpr std::size_t kPrefixBytes = 155;
constexpr std::size_t kSparseMore = 482;     // in a header
constexpr std::size_t kSparseMapMore = 504;  // in a block of a map
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 62;
constexpr std::uint64_t kOctalMax = (std::uint64_t{1} << 33) - 1;  // eleven digits

std::string_view text_of(std::string_view block, std::size_t at, std::size_t bytes) {
  const std::string_view field = block.substr(at, bytes);
  return field.substr(0, field.find('\0'));
}

std::optional<std::uint64_t> octal(std::string_view field) {
  field = text_of(field, 0, field.size());
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  field = field.substr(0, field.find(' '));
  std::uint64_t value = 0;
  if (field.empty()) return value;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (error != std::errc{} || end != field.data() + field.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> size_of(std::string_view block) {
  const std::string_view field = block.substr(kSize, 12);
  const auto first = static_cast<unsigned char>(field[0]);
  if ((first & 0x80U) == 0) return octal(field);
  // A big number of GNU tar, in bytes; the first bit marks it, the second is its sign.
  std::uint64_t value = first & 0x7fU;
  for (const char byte : field.substr(1)) {
    if (value >= kBytesMax >> 8U) return std::nullopt;
    value = value << 8U | static_cast<unsigned char>(byte);
  }
  return value;
}

/// Some old programs added the bytes as signed numbers.
bool checksum_agrees(std::string_view block) {
  const std::optional<std::uint64_t> wanted = octal(block.substr(kChecksum, 8));
  if (!wanted) return false;
  unsigned sum = 8 * ' ';
  unsigned high_bytes = 0;
  const auto add = [&](std::string_view part) {
    for (const char byte : part) {
      sum += static_cast<unsigned char>(byte);
      high_bytes += static_cast<unsigned char>(byte) >> 7U;
    }
  };
  add(block.substr(0, kChecksum));
  add(block.substr(kChecksum + 8));
  return *wanted == sum || *wanted == std::uint64_t{sum} - 256 * std::uint64_t{high_bytes};
}

/// Of what is no file.
std::string_view refusal_of(char type) {
  switch (type) {
    case '1':
      return "a hard link";
    case '2':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a pipe";
    case 'S':
      return "a sparse file";
    case 'M':
      return "the rest of a file of another volume";
    default:
      return "of an unknown type";
  }
}

/// These have no content, whatever their size says.
bool has_content(char type) {
  return type < '1' || type > '6';
}

constexpr std::string_view kWrongPax = "an extended header is damaged";

}  // namespace

std::optional<TarName> tar_name_of(const TarMember& member) {
  if (member.ignored) return std::nullopt;
  const std::string_view name = member.name;
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  const bool has_extension = dot != std::string_view::npos && dot != base && dot + 1 != name.size();
  if (!member.refused.empty() || is_unsafe_path(name)) {
    if (has_extension) return TarName{name.substr(0, dot), name.substr(dot + 1)};
    return TarName{name, {}};
  }
  const bool meta =
      slash == std::string_view::npos && name.starts_with("__") && name.ends_with("__");
  if (meta || !has_extension) return std::nullopt;
  return TarName{name.substr(0, dot), name.substr(dot + 1)};
}

void TarHeaders::forget() {
  long_name_.clear();
  path_.clear();
  sparse_name_.clear();
  size_.reset();
  sparse_ = false;
}

Result<TarHeaders::Next> TarHeaders::read(std::string_view block) {
  PENSTOCK_CHECK_EQ(block.size(), kTarBlock);
  if (!within_) header_bytes_ = 0;
  header_bytes_ += kTarBlock;
  if (header_bytes_ > kHeaderBytesMax)
    return Failure{
        fmt::format("the headers of a member are longer than {} bytes", kHeaderBytesMax)};
  if (within_sparse_map_) {
    within_ = within_sparse_map_ = block[kSparseMapMore] != '\0';
    return within_ ? Next::header : Next::member;
  }
  if (!within_) forget();
  zeros_ = block[0] == '\0' && std::memcmp(block.data(), block.data() + 1, kTarBlock - 1) == 0;
  if (zeros_) {
    if (within_) return Failure{"an extended header has no member after it"};
    return Next::header;
  }
  if (!checksum_agrees(block)) return Failure{"the checksum of a header is wrong"};
  const char type = block[kType];
  if (type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K') {
    const std::optional<std::uint64_t> bytes = size_of(block);
    if (!bytes || *bytes > kExtensionBytesMax)
      return Failure{fmt::format("an extended header is longer than {} bytes", kExtensionBytesMax)};
    extension_bytes_ = *bytes;
    header_bytes_ += tar_padded(*bytes);
    extension_type_ = type;
    within_ = within_ || type != 'g';
    return Next::extension;
  }
  if (Result<void> read = read_member(block, type); !read.ok()) return std::move(read.failure());
  within_sparse_map_ = type == 'S' && block[kSparseMore] != '\0';
  within_ = within_sparse_map_;
  if (!within_) return Next::member;
  sparse_name_ = std::string(member_.name);  // this block is gone when the map has been read
  member_.name = sparse_name_;
  return Next::header;
}

Result<void> TarHeaders::read_member(std::string_view block, char type) {
  const std::optional<std::uint64_t> size = size_of(block);
  if (!size || *size > kBytesMax) return Failure{"the size in a header is no size"};
  member_ = {};
  name_member(block);
  // Writers leave the field empty, or at its greatest value, if the size does not fit.
  if (size_ && *size_ <= kOctalMax && *size_ != *size)
    return Failure{
        fmt::format("member \"{}\" has {} bytes by its header and {} bytes by its "
                    "extended header",
                    printable(member_.name), *size, *size_)};
  if (has_content(type)) member_.content_bytes = size_.value_or(*size);
  const bool regular = type == '0' || type == '\0' || type == '7';
  const bool folder = type == '5' || type == 'D' || (regular && member_.name.ends_with('/'));
  member_.ignored = folder || type == 'V';  // V: the label of a volume
  if (!regular && !member_.ignored) member_.refused = refusal_of(type);
  if (sparse_) member_.refused = "a sparse file";
  return {};
}

void TarHeaders::name_member(std::string_view block) {
  if (!sparse_name_.empty()) {
    member_.name = sparse_name_;
  } else if (!path_.empty()) {
    member_.name = path_;
  } else if (!long_name_.empty()) {
    member_.name = long_name_;
  } else {
    member_.name = text_of(block, 0, kNameBytes);
    // GNU tar, whose magic has a space here, has other fields in this place.
    if (block.substr(kMagic, 6) != std::string_view("ustar\0", 6)) return;
    const std::string_view prefix = text_of(block, kPrefix, kPrefixBytes);
    if (prefix.empty()) return;
    char* end = std::ranges::copy(prefix, joined_.data()).out;
    *end++ = '/';
    end = std::ranges::copy(member_.name, end).out;
    member_.name = {joined_.data(), end};
  }
}

Result<void> TarHeaders::extend(std::string_view content) {
  PENSTOCK_CHECK_EQ(content.size(), extension_bytes_);
  switch (extension_type_) {
    case 'L':
      long_name_ = text_of(content, 0, content.size());
      return {};
    case 'K':
      return {};  // where a link leads
    default:
      return extend_by_pax(content, extension_type_ == 'g');
  }
}

/// Records of the form "LENGTH KEY=VALUE\n", whose length counts all of it.
Result<void> TarHeaders::extend_by_pax(std::string_view content, bool global) {
  while (!content.empty()) {
    std::size_t length = 0;
    const auto [digits_end, error] =
        std::from_chars(content.data(), content.data() + content.size(), length);
    const auto digits = static_cast<std::size_t>(digits_end - content.data());
    // At least "N k=\n".
    if (error != std::errc{} || length > content.size() || length < digits + 4 ||
        content[digits] != ' ' || content[length - 1] != '\n')
      return Failure{std::string(kWrongPax)};
    const std::string_view record = content.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == 0 || equals == std::string_view::npos) return Failure{std::string(kWrongPax)};
    if (Result<void> extended =
            extend_by_record(record.substr(0, equals), record.substr(equals + 1), global);
        !extended.ok())
      return extended;
    content.remove_prefix(length);
  }
  return {};
}

Result<void> TarHeaders::extend_by_record(std::string_view key, std::string_view value,
                                          bool global) {
  const bool sparse = key.starts_with("GNU.sparse.");
  if (key != "path" && key != "size" && !sparse) return {};
  // A sample is read without what is before it in the file.
  if (global)
    return Failure{fmt::format("a global header gives all members after it the same {}",
                               sparse ? "sparse map" : key)};
  sparse_ = sparse_ || sparse;
  if (key == "path") path_ = value;
  if (key == "GNU.sparse.name") sparse_name_ = value;
  if (key != "size") return {};
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
  if (error != std::errc{} || end != value.data() + value.size() || size > kBytesMax)
    return Failure{fmt::format("the size \"{}\" in an extended header is no size",
                               printable(value.substr(0, 40)))};
  size_ = size;
  return {};
}

}  // namespace penstock
