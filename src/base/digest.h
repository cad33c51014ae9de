#pragma once
// Digests of data that must agree between a state and a dataset, or between ranks. Not for secrets.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/mix.h"

namespace penstock {

/// A running 64-bit digest of the values added, their order and the boundaries between them.
class Digest {
 public:
  void add(std::uint64_t word) { state_ = combine(state_, word); }
  void add(std::string_view bytes) {
    add(static_cast<std::uint64_t>(bytes.size()));
    while (!bytes.empty()) {
      std::uint64_t word = 0;
      const std::size_t count = bytes.size() < sizeof word ? bytes.size() : sizeof word;
      std::memcpy(&word, bytes.data(), count);
      add(word);
      bytes.remove_prefix(count);
    }
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }
  [[nodiscard]] std::string text() const;

 private:
  std::uint64_t state_ = 0;
};

}  // namespace penstock
