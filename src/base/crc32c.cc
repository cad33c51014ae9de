#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

using Table = std::array<std::uint32_t, 256>;

/// tables[k][b]: the remainder of byte b followed by k zero bytes, to process eight bytes at a
/// time.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}
constexpr std::array<Table, 8> kTables = make_tables();

#if defined(__x86_64__)

/// The instruction takes 3 cycles for 8 bytes, but a new one can start in every cycle: long inputs
/// are cut into three lanes of equal length.
constexpr std::size_t kWord = 8;
constexpr std::size_t kLaneWordsMax = 128;

/// The reflected remainder of `value` times x to the power of `bits`.
constexpr std::uint32_t times_x(std::uint32_t value, int bits) {
  for (int i = 0; i < bits; ++i) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  return value;
}

/// shifts[n]: x to the power of 64 n - 33. What is multiplied by it, and then given to the
/// instruction (which multiplies by x^32; another x comes from the product of reflected numbers),
/// has moved by n words.
using Shifts = std::array<std::uint32_t, 2 * kLaneWordsMax + 1>;
constexpr Shifts make_shifts() {
  Shifts shifts{};
  shifts[1] = 1;  // x^31
  for (std::size_t n = 2; n < shifts.size(); ++n) shifts[n] = times_x(shifts[n - 1], 64);
  return shifts;
}
constexpr Shifts kShifts = make_shifts();

inline std::uint64_t word_at(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

__attribute__((target("sse4.2,pclmul"))) inline std::uint64_t moved(std::uint64_t rest,
                                                                    std::size_t words) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(rest)),
                                               _mm_cvtsi64_si128(kShifts[words]), 0);
  return _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}

__attribute__((target("sse4.2,pclmul"))) std::uint32_t crc32c_sse42(std::string_view bytes,
                                                                    std::uint32_t before) {
  constexpr std::size_t kLaneWordsMin = 8;  // below, joining the lanes costs more than they save
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  std::uint64_t rest = static_cast<std::uint32_t>(~before);
  while (static_cast<std::size_t>(end - at) >= 3 * kWord * kLaneWordsMin) {
    const std::size_t fitting = static_cast<std::size_t>(end - at) / (3 * kWord);
    const std::size_t words = fitting < kLaneWordsMax ? fitting : kLaneWordsMax;
    const std::size_t lane = words * kWord;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (const char* const lane_end = at + lane; at < lane_end; at += kWord) {
      rest = _mm_crc32_u64(rest, word_at(at));
      second = _mm_crc32_u64(second, word_at(at + lane));
      third = _mm_crc32_u64(third, word_at(at + 2 * lane));
    }
    rest = moved(rest, 2 * words) ^ moved(second, words) ^ third;
    at += 2 * lane;
  }
  for (; static_cast<std::size_t>(end - at) >= kWord; at += kWord)
    rest = _mm_crc32_u64(rest, word_at(at));
  auto last = static_cast<std::uint32_t>(rest);
  for (; at < end; ++at) last = _mm_crc32_u8(last, static_cast<unsigned char>(*at));
  return ~last;
}

bool has_crc32c() {
  static const bool has = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  return has;
}

#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#if defined(__x86_64__)
  if (has_crc32c()) return crc32c_sse42(bytes, before);
#endif
  return crc32c_plain(bytes, before);
}

std::uint32_t crc32c_plain(std::string_view bytes, std::uint32_t before) {
  std::uint32_t rest = ~before;
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= rest;
    rest = 0;
    for (std::size_t k = 0; k < 8; ++k) rest ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
    bytes.remove_prefix(8);
  }
  for (const char byte : bytes)
    rest = (rest >> 8) ^ kTables[0][(rest ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~rest;
}

}  // namespace penstock
