#pragma once

#include <cstddef>
#include <memory>

namespace penstock {

/// Allocates slabs. A slab is one aligned piece of memory that holds one batch. Implementations
/// must be thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// Returns `bytes` of memory, aligned to 64 bytes. Throws ResourceError if there is none.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* data, std::size_t bytes) noexcept = 0;

  static std::shared_ptr<Allocator> heap();
};

}  // namespace penstock
