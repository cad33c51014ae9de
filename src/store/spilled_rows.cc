// tested in src/store/disk_rows_test.cc
#include "store/spilled_rows.h"

#include <fmt/format.h>

#include <utility>

#include "sample/rows.h"

namespace penstock {

SpilledRows::SpilledRows(std::shared_ptr<RowStore> first, std::shared_ptr<RowStore> then)
    : first_(std::move(first)), then_(std::move(then)) {}

std::vector<std::uint32_t> SpilledRows::get(std::span<const std::uint64_t> numbers,
                                            std::span<const std::uint32_t> some,
                                            const BlockView& out) {
  const std::vector<std::uint32_t> missing = first_->get(numbers, some, out);
  return missing.empty() ? missing : then_->get(numbers, missing, out);
}

bool SpilledRows::has(std::uint64_t number) {
  return first_->has(number) || then_->has(number);
}

void SpilledRows::put(std::span<const std::uint64_t> numbers, const BlockView& block) {
  if (!first_->full()) first_->put(numbers, block);
  Scratch scratch;
  for (std::size_t row = 0; row < numbers.size();) {
    std::size_t end = row;
    while (end < numbers.size() && !first_->has(numbers[end])) ++end;
    if (end > row)
      then_->put(numbers.subspan(row, end - row), cut_rows(block, row, end - row, scratch));
    row = end + 1;
  }
}

std::string SpilledRows::text() const {
  return fmt::format("{}, {}", first_->text(), then_->text());
}

}  // namespace penstock
