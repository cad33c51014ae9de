#include "penstock/rng.h"

#include <cmath>
#include <numbers>

namespace penstock {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = 0xD2511F53ULL * counter[0];
    const std::uint64_t product1 = 0xCD9E8D57ULL * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

std::uint64_t Rng::operator()() {
  // One Philox block holds two draws.
  if (draw_++ % 2 != 0) return spare_;
  const std::uint64_t block = (draw_ - 1) / 2;
  const auto words =
      philox({static_cast<std::uint32_t>(number_), static_cast<std::uint32_t>(number_ >> 32),
              static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32)},
             {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)});
  spare_ = words[2] | (static_cast<std::uint64_t>(words[3]) << 32);
  return words[0] | (static_cast<std::uint64_t>(words[1]) << 32);
}

std::uint64_t Rng::integer(std::uint64_t count) {
  // Rejects the few draws that would favor small numbers.
  const std::uint64_t limit = max() - max() % count;
  std::uint64_t draw = (*this)();
  while (draw >= limit) draw = (*this)();
  return draw % count;
}

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace penstock
