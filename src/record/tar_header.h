#pragma once
// The headers of a tar file: ustar, the older form without a magic number, GNU and pax.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/result.h"

namespace penstock {

inline constexpr std::size_t kTarBlock = 512;

/// With the zeros after it.
constexpr std::uint64_t tar_padded(std::uint64_t bytes) {
  return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

struct TarMember {
  std::string_view name;
  std::uint64_t content_bytes = 0;  // after the header, without padding; at most 2^62
  /// Directories and the like: of no interest. Otherwise it is a file if `refused` is empty.
  bool ignored = false;
  std::string_view refused;  // why it is not read: "a symbolic link"
};

/// How a member belongs to a sample: those that follow each other and have the same key form one.
struct TarName {
  std::string_view key;        // the name up to the first dot of its last part
  std::string_view extension;  // what is after the dot
};
/// Nullopt for members that belong to no sample: directories, hidden files, names without an
/// extension, and those like "__info__". What must not be read, such as links and unsafe names,
/// always belongs to one, so that it is not passed over in silence.
std::optional<TarName> tar_name_of(const TarMember& member);

/// Is given the headers of a tar file in their order. Failures do not say where; after one nothing
/// may be called.
class TarHeaders {
 public:
  static constexpr std::uint64_t kExtensionBytesMax = std::uint64_t{1} << 20;
  /// Of all headers of a member: what a reader of a stream keeps in memory.
  static constexpr std::uint64_t kHeaderBytesMax = std::uint64_t{4} << 20;

  enum class Next : std::uint8_t {
    header,     // another header follows
    extension,  // `extension_bytes` follow and are padded; `extend` must be called with them
    member,     // `member` is complete; its content follows
  };
  /// `block` is one block. It must stay where it is while `member` is used.
  Result<Next> read(std::string_view block);
  [[nodiscard]] std::uint64_t extension_bytes() const { return extension_bytes_; }
  Result<void> extend(std::string_view content);
  [[nodiscard]] const TarMember& member() const { return member_; }
  /// True if the last block held only zeros, which stand at the end of an archive.
  [[nodiscard]] bool zeros() const { return zeros_; }
  /// True between the first header of a member and the last.
  [[nodiscard]] bool within() const { return within_; }

 private:
  Result<void> read_member(std::string_view block, char type);
  Result<void> extend_by_pax(std::string_view content, bool global);
  Result<void> extend_by_record(std::string_view key, std::string_view value, bool global);
  void name_member(std::string_view block);
  void forget();

  TarMember member_;
  std::array<char, 256> joined_{};  // a name of two parts
  // What the headers before that of the member say.
  std::string long_name_;  // of GNU
  std::string path_;       // of pax
  std::string sparse_name_;
  std::optional<std::uint64_t> size_;
  bool sparse_ = false;

  std::uint64_t header_bytes_ = 0;  // of the member so far
  std::uint64_t extension_bytes_ = 0;
  char extension_type_ = 0;
  bool within_ = false;
  bool within_sparse_map_ = false;
  bool zeros_ = false;
};

}  // namespace penstock
