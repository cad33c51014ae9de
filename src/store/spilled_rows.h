#pragma once
// Rows in memory, and in a folder once that is full.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/row_store.h"

namespace penstock {

class SpilledRows final : public RowStore {
 public:
  SpilledRows(std::shared_ptr<RowStore> first, std::shared_ptr<RowStore> then);

  using RowStore::get;
  std::vector<std::uint32_t> get(std::span<const std::uint64_t> numbers,
                                 std::span<const std::uint32_t> some,
                                 const BlockView& out) override;
  [[nodiscard]] bool has(std::uint64_t number) override;
  void put(std::span<const std::uint64_t> numbers, const BlockView& block) override;
  [[nodiscard]] bool full() const override { return first_->full() && then_->full(); }
  [[nodiscard]] std::string text() const override;

 private:
  const std::shared_ptr<RowStore> first_;
  const std::shared_ptr<RowStore> then_;
};

}  // namespace penstock
