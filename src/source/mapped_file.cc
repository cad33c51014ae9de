// tested in src/source/ragged_rows_test.cc
#include "source/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/printable.h"
#include "penstock/error.h"

namespace penstock {
namespace {

[[noreturn]] void refuse(const std::string& path, const char* what) {
  const int error = errno;
  Where where;
  where.file = path;
  throw IoError(fmt::format("{}: {}: {}", printable(path), what, std::strerror(error)), where);
}

}  // namespace

Tensor map_file(const std::string& path, Dtype dtype) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse(path, "cannot be opened");
  const std::unique_ptr<const int, void (*)(const int*)> closed(
      &file, [](const int* open) { ::close(*open); });
  struct stat facts{};
  if (::fstat(file, &facts) != 0) refuse(path, "cannot be examined");
  if (!S_ISREG(facts.st_mode)) {
    errno = EINVAL;
    refuse(path, "is not a file");
  }
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  if (bytes % dtype_size(dtype) != 0)
    throw ConfigError(fmt::format("{} has {} bytes, not a whole number of {}", printable(path),
                                  bytes, dtype_name(dtype)),
                      {}, "pass the dtype that it was written with");
  if (bytes == 0) return Tensor::copy(dtype, {0}, {});
  void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) refuse(path, "cannot be mapped");
  const std::shared_ptr<const void> owner(data, [bytes](void* mapped) { ::munmap(mapped, bytes); });
  return Tensor::view(dtype, {static_cast<std::int64_t>(bytes / dtype_size(dtype))},
                      {static_cast<const std::byte*>(data), bytes}, owner);
}

}  // namespace penstock
