#pragma once
// Which of a fixed set of names is this one?

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

namespace penstock {

/// Finds names in a few nanoseconds. Does not own them.
class NameTable {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  NameTable() = default;
  /// The names differ; no more than `capacity` are added.
  explicit NameTable(std::size_t capacity)
      : entries_(std::bit_ceil(2 * capacity + 1)), mask_(entries_.size() - 1) {}

  void add(std::string_view name, std::uint32_t value) {
    std::size_t at = hash(name) & mask_;
    while (entries_[at].value != kNone) at = (at + 1) & mask_;
    entries_[at] = {name, value};
  }
  /// The value of `name`, or kNone.
  [[nodiscard]] std::uint32_t find(std::string_view name) const {
    for (std::size_t at = hash(name) & mask_;; at = (at + 1) & mask_) {
      const Entry& entry = entries_[at];
      if (entry.value == kNone || entry.name == name) return entry.value;
    }
  }

 private:
  struct Entry {
    std::string_view name;
    std::uint32_t value = kNone;
  };
  static std::size_t hash(std::string_view name) {
    std::uint64_t state = name.size();
    while (name.size() >= sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, name.data(), sizeof word);
      state = add_word(state, word);
      name.remove_prefix(sizeof word);
    }
    std::uint64_t word = 0;
    for (const char letter : name) word = word << 8 | static_cast<unsigned char>(letter);
    return add_word(state, word);
  }
  static std::uint64_t add_word(std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
    return state ^ state >> 32;
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
};

}  // namespace penstock
