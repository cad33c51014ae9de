#pragma once
// Names, sizes and labels of files, millions of them: one byte string and three arrays, about 20
// bytes per file plus its name.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "penstock/error.h"

namespace penstock {

/// Built once by one thread, then read by any thread.
class FileTable {
 public:
  static constexpr std::uint64_t kSizeUnknown = UINT64_MAX;

  /// Names are relative to `root`; an empty one leaves them unchanged.
  explicit FileTable(std::string root) : root_(std::move(root)) {}

  void reserve(std::size_t files, std::size_t name_bytes);
  void add(std::string_view name, std::uint64_t bytes, std::int32_t label = -1);
  void set_label(std::size_t file, std::int32_t label) { labels_[file] = label; }

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::string_view name(std::size_t file) const {
    return std::string_view(names_).substr(ends_[file], ends_[file + 1] - ends_[file]);
  }
  [[nodiscard]] std::uint64_t bytes(std::size_t file) const { return bytes_[file]; }
  [[nodiscard]] std::int32_t label(std::size_t file) const { return labels_[file]; }
  /// The path of the file.
  [[nodiscard]] std::string path(std::size_t file) const;
  [[nodiscard]] std::uint64_t bytes_total() const;
  /// Bytes of memory that it uses.
  [[nodiscard]] std::size_t memory_bytes() const;

  /// A digest of the count, relative names and sizes; visits all of them.
  void identify(Digest& digest) const;

 private:
  std::string root_;
  std::string names_;
  std::vector<std::uint64_t> ends_{0};  // ends of the names; one more than files
  std::vector<std::uint64_t> bytes_;
  std::vector<std::int32_t> labels_;
};

/// `folder` and `name` as one path; either may be empty.
std::string join_path(std::string_view folder, std::string_view name);

}  // namespace penstock
