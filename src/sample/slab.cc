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

}  // namespace penstock
