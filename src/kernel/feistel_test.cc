#include "kernel/feistel.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/mix.h"
#include "penstock/error.h"

namespace penstock {
namespace {

// Around the 16 lanes of a block, and several blocks.
constexpr std::size_t kCounts[] = {0, 1, 15, 16, 17, 31, 32, 70};

std::uint64_t word_below(int bits, std::uint64_t draw) {
  return mix(draw + 1) >> (64 - bits);
}

TEST(FeistelTest, EncodeIsABijection) {
  for (int bits = Feistel::kBitsMin; bits <= 14; ++bits) {
    const Feistel network(bits, 7);
    const std::uint64_t count = std::uint64_t{1} << bits;
    std::vector<bool> seen(count);
    for (std::uint64_t word = 0; word < count; ++word) {
      const std::uint64_t code = network.encode(word);
      ASSERT_LT(code, count) << "bits " << bits;
      ASSERT_FALSE(seen[code]) << "bits " << bits;
      seen[code] = true;
    }
  }
}

TEST(FeistelTest, DecodeUndoesEncodeAtEveryWidth) {
  for (int bits = Feistel::kBitsMin; bits <= Feistel::kBitsMax; ++bits) {
    const Feistel network(bits, 11);
    const std::uint64_t word_max = std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
    for (std::uint64_t draw = 0; draw < 100; ++draw) {
      const std::uint64_t word = word_below(bits, draw);
      ASSERT_LE(network.encode(word), word_max) << "bits " << bits;
      ASSERT_EQ(network.decode(network.encode(word)), word) << "bits " << bits;
    }
  }
}

TEST(FeistelTest, EveryTargetEqualsTheScalarForm) {
  for (const Feistel::Target& target : Feistel::targets()) {
    for (int bits = Feistel::kBitsMin; bits <= Feistel::kBitsMax; ++bits) {
      const Feistel network(bits, 13);
      for (const std::size_t count : kCounts) {
        std::vector<std::uint64_t> words;
        std::vector<std::uint64_t> expected;
        for (std::uint64_t draw = 0; draw < count; ++draw) {
          words.push_back(word_below(bits, draw));
          expected.push_back(network.encode(words.back()));
        }
        target.encode_block(network, words);
        ASSERT_EQ(words, expected) << target.name << ", bits " << bits << ", count " << count;
      }
    }
  }
}

TEST(FeistelTest, ABlockDoesNotChangeTheWordsAroundIt) {
  for (const Feistel::Target& target : Feistel::targets()) {
    const Feistel network(20, 17);
    std::vector<std::uint64_t> words(64, 5);
    target.encode_block(network, std::span(words).subspan(3, 21));
    for (std::size_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(words[i], i >= 3 && i < 24 ? network.encode(5) : 5) << target.name << " at " << i;
    }
  }
}

TEST(FeistelTest, ThePlainTargetIsAlwaysAvailable) {
  ASSERT_FALSE(Feistel::targets().empty());
  EXPECT_EQ(std::string_view(Feistel::targets().front().name), "plain");
}

TEST(FeistelTest, TheDefaultBlockFormEqualsTheScalarForm) {
  const Feistel network(40, 19);
  std::vector<std::uint64_t> words{0, 1, 2, 3};
  network.encode_block(words);
  for (std::uint64_t word = 0; word < 4; ++word) EXPECT_EQ(words[word], network.encode(word));
}

TEST(FeistelTest, WidthsOutOfRangeThrow) {
  EXPECT_THROW(Feistel(1, 0), InternalError);
  EXPECT_THROW(Feistel(65, 0), InternalError);
}

}  // namespace
}  // namespace penstock
