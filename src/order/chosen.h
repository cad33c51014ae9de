#pragma once
// A selection of N elements: a bitmap with ranks. One bit per element; finds any selected element
// in a few steps.

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// Immutable.
class Chosen {
 public:
  /// Bit i % 64 of words[i / 64] says whether element i is selected; bits beyond `size` must be 0.
  Chosen(std::uint64_t size, std::vector<std::uint64_t> words);

  /// Number of elements that were selected from.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t count() const { return ranks_.back(); }
  /// The selected element number `rank`, which must be below count().
  [[nodiscard]] std::uint64_t operator[](std::uint64_t rank) const;
  /// Equal for equal selections.
  [[nodiscard]] const std::string& digest() const { return digest_; }

 private:
  static constexpr std::uint64_t kBlockWords = 8;
  std::uint64_t size_;
  std::vector<std::uint64_t> words_;
  std::string digest_;                // computed once: every state contains it
  std::vector<std::uint64_t> ranks_;  // selected before each block of words; the last is the total
};

}  // namespace penstock
