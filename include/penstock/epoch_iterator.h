#pragma once

#include <cstddef>
#include <iterator>
#include <optional>

namespace penstock {

/// The iterator of `for (const Item& item : source)`: calls `source.next()` until that returns
/// nullopt.
template <typename Source, typename Item>
class EpochIterator {
 public:
  using value_type = Item;
  using difference_type = std::ptrdiff_t;
  explicit EpochIterator(Source* source) : source_(source) { ++*this; }
  const Item& operator*() const { return *item_; }
  EpochIterator& operator++() {
    item_ = source_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const EpochIterator& it, std::default_sentinel_t) { return !it.item_; }

 private:
  Source* source_;
  std::optional<Item> item_;
};

}  // namespace penstock
