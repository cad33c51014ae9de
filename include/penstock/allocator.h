#pragma once
// Where batches live. A slab is one aligned piece of memory that holds one batch; it comes from an
// Allocator (heap now; shared by descriptor and pinned later) and goes back to it.

#include <cstddef>
#include <functional>
#include <memory>

namespace penstock {

/// Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// `bytes` of memory, aligned to 64; throws ResourceError.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* data, std::size_t bytes) noexcept = 0;

  static std::shared_ptr<Allocator> heap();
};

/// Says whether a slab may be reused yet: a copy to a device that still reads it answers false.
using Fence = std::function<bool()>;

}  // namespace penstock
