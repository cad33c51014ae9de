#include "sample/slab.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "penstock/error.h"

namespace penstock {
namespace {

/// Counts what is out.
class CountingAllocator final : public Allocator {
 public:
  std::byte* allocate(std::size_t bytes) override {
    out_ += bytes;
    return heap()->allocate(bytes);
  }
  void release(std::byte* data, std::size_t bytes) noexcept override {
    out_ -= bytes;
    heap()->release(data, bytes);
  }
  [[nodiscard]] std::size_t out() const { return out_; }

 private:
  std::size_t out_ = 0;
};

TEST(SlabTest, ReturnsItsMemoryOnceHoweverOftenItMoves) {
  const auto allocator = std::make_shared<CountingAllocator>();
  {
    Slab first(allocator, 100);
    std::byte* const data = first.data();
    Slab second = std::move(first);
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(second.bytes(), 100U);
    Slab third(allocator, 50);
    third = std::move(second);
    EXPECT_EQ(third.data(), data);
  }
  EXPECT_EQ(allocator->out(), 0U);
}

TEST(SlabTest, KeepsItsAllocatorAlive) {
  auto allocator = std::make_shared<CountingAllocator>();
  const std::weak_ptr<CountingAllocator> alive = allocator;
  {
    const Slab slab(std::move(allocator), 10);
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
}

TEST(SlabTest, HeapMemoryIsAlignedTo64) {
  for (const std::size_t bytes : {1, 64, 65, 100'000}) {
    const Slab slab(Allocator::heap(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.data()) % 64, 0U);
  }
}

TEST(SlabTest, ALackOfMemoryIsAResourceError) {
#ifndef PENSTOCK_FAULTS
  GTEST_SKIP() << "needs fault points";
#endif
  fault::arm("slab.allocate", 1);
  EXPECT_THROW(Slab(Allocator::heap(), 100), ResourceError);
  const Slab slab(Allocator::heap(), 100);
  EXPECT_NE(slab.data(), nullptr);
  fault::disarm_all();
}

}  // namespace
}  // namespace penstock
