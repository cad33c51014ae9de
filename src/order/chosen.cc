#include "order/chosen.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/digest.h"

namespace penstock {

Chosen::Chosen(std::uint64_t size, std::vector<std::uint64_t> words)
    : size_(size), words_(std::move(words)) {
  PENSTOCK_CHECK_EQ(words_.size(), (size + 63) / 64);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (i % kBlockWords == 0) ranks_.push_back(total);
    total += static_cast<std::uint64_t>(std::popcount(words_[i]));
  }
  ranks_.push_back(total);
  Digest digest;
  digest.add(fmt::format("{}", size_));
  digest.add({reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(std::uint64_t)});
  digest_ = digest.text();
}

std::uint64_t Chosen::operator[](std::uint64_t rank) const {
  PENSTOCK_CHECK_LT(rank, count());
  const auto after = std::ranges::upper_bound(ranks_, rank);
  const auto block = static_cast<std::uint64_t>(after - ranks_.begin()) - 1;
  std::uint64_t left = rank - ranks_[block];
  for (std::uint64_t i = block * kBlockWords;; ++i) {
    std::uint64_t word = words_[i];
    const auto here = static_cast<std::uint64_t>(std::popcount(word));
    if (left >= here) {
      left -= here;
      continue;
    }
    for (; left > 0; --left) word &= word - 1;
    return i * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
  }
}

}  // namespace penstock
