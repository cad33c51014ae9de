#pragma once
// Slabs: one aligned piece of memory per batch, used again when nobody looks at it any more.

#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "penstock/allocator.h"

namespace penstock {

/// Memory from an allocator, given back when destroyed. Movable.
class Slab {
 public:
  Slab() = default;
  Slab(std::shared_ptr<Allocator> allocator, std::size_t bytes);
  ~Slab();
  Slab(Slab&& other) noexcept { swap(other); }
  Slab& operator=(Slab&& other) noexcept {
    swap(other);
    return *this;
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void swap(Slab& other) noexcept;
  std::shared_ptr<Allocator> allocator_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Keeps slabs between uses. Thread-safe. A consumer that keeps its batches gets new slabs; at most
/// `spare_max` bytes wait here.
class SlabRing {
 public:
  SlabRing(std::shared_ptr<Allocator> allocator, std::size_t spare_bytes_max)
      : allocator_(std::move(allocator)), spare_bytes_max_(spare_bytes_max) {}

  /// A slab of exactly `bytes`.
  Slab acquire(std::size_t bytes);
  /// Takes a slab back; it is used again once `fence` (if any) answers true.
  void release(Slab slab, Fence fence);
  [[nodiscard]] std::size_t spare_bytes() const;

 private:
  struct Spare {
    Slab slab;
    Fence fence;
  };
  const std::shared_ptr<Allocator> allocator_;
  const std::size_t spare_bytes_max_;
  mutable Mutex mutex_;
  std::vector<Spare> spare_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t spare_bytes_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock
