#include "source/file_table.h"

#include <numeric>

namespace penstock {

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/' && !name.empty()) path += '/';
  return path.append(name);
}

void FileTable::reserve(std::size_t files, std::size_t name_bytes) {
  names_.reserve(name_bytes);
  ends_.reserve(files + 1);
  bytes_.reserve(files);
  labels_.reserve(files);
}

void FileTable::add(std::string_view name, std::uint64_t bytes, std::int32_t label) {
  names_ += name;
  ends_.push_back(names_.size());
  bytes_.push_back(bytes);
  labels_.push_back(label);
}

std::string FileTable::path(std::size_t file) const {
  return join_path(root_, name(file));
}

std::uint64_t FileTable::bytes_total() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), std::uint64_t{0});
}

std::size_t FileTable::memory_bytes() const {
  return names_.capacity() + ends_.capacity() * sizeof(std::uint64_t) +
         bytes_.capacity() * sizeof(std::uint64_t) + labels_.capacity() * sizeof(std::int32_t);
}

void FileTable::identify(Digest& digest) const {
  digest.add(static_cast<std::uint64_t>(size()));
  for (std::size_t file = 0; file < size(); ++file) {
    digest.add(name(file));
    digest.add(bytes_[file]);
  }
}

}  // namespace penstock
