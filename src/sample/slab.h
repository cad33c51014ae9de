#pragma once
// Slabs: one aligned piece of memory per batch.

#include <cstddef>
#include <memory>

#include "penstock/allocator.h"

namespace penstock {

/// Memory from an allocator; the destructor returns it. Movable.
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

}  // namespace penstock
