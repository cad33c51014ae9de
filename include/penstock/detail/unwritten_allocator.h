#pragma once

#include <memory>
#include <new>
#include <utility>

namespace penstock::detail {

/// Default-initializes, so that memory that a read will fill is not zeroed first.
template <typename T>
struct UnwrittenAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = UnwrittenAllocator<U>;
  };
  template <typename U, typename... Values>
  void construct(U* place, Values&&... values) {
    if constexpr (sizeof...(Values) == 0)
      ::new (static_cast<void*>(place)) U;
    else
      ::new (static_cast<void*>(place)) U(std::forward<Values>(values)...);
  }
};

}  // namespace penstock::detail
