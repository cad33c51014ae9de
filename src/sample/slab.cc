#include "sample/slab.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "base/fault.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::align_val_t kAlign{64};

class HeapAllocator final : public Allocator {
 public:
  std::byte* allocate(std::size_t bytes) override {
    void* data =
        PENSTOCK_FAULT("slab.allocate") ? nullptr : ::operator new(bytes, kAlign, std::nothrow);
    if (data == nullptr)
      throw ResourceError(fmt::format("no memory for a batch of {} bytes", bytes), {},
                          "use a smaller batch, or less look-ahead");
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data, std::size_t) noexcept override { ::operator delete(data, kAlign); }
};

}  // namespace

std::shared_ptr<Allocator> Allocator::heap() {
  static const auto allocator = std::make_shared<HeapAllocator>();
  return allocator;
}

Slab::Slab(std::shared_ptr<Allocator> allocator, std::size_t bytes)
    : allocator_(std::move(allocator)), data_(allocator_->allocate(bytes)), bytes_(bytes) {}

Slab::~Slab() {
  if (data_ != nullptr) allocator_->release(data_, bytes_);
}

void Slab::swap(Slab& other) noexcept {
  std::swap(allocator_, other.allocator_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

Slab SlabRing::acquire(std::size_t bytes) {
  {
    Lock lock(mutex_);
    // The latest back is the warmest in cache.
    for (std::size_t i = spare_.size(); i-- > 0;) {
      if (spare_[i].slab.bytes() != bytes) continue;
      if (spare_[i].fence && !spare_[i].fence()) continue;
      Slab slab = std::move(spare_[i].slab);
      spare_.erase(spare_.begin() + static_cast<std::ptrdiff_t>(i));
      spare_bytes_ -= bytes;
      return slab;
    }
  }
  return Slab(allocator_, bytes);
}

void SlabRing::release(Slab slab, Fence fence) {
  Lock lock(mutex_);
  // A slab with a fence must outlive its reader, so it is kept even when there are enough.
  if (!fence && spare_bytes_ + slab.bytes() > spare_bytes_max_) return;
  spare_bytes_ += slab.bytes();
  spare_.push_back({std::move(slab), std::move(fence)});
}

std::size_t SlabRing::spare_bytes() const {
  Lock lock(mutex_);
  return spare_bytes_;
}

}  // namespace penstock
