#include "order/chosen.h"

#include <gtest/gtest.h>

#include "penstock/rng.h"

namespace penstock {
namespace {

TEST(ChosenTest, FindsEveryChosenElementOfAnySize) {
  Rng rng(7, 0);
  for (const std::uint64_t size : {0U, 1U, 63U, 64U, 65U, 511U, 512U, 513U, 5000U}) {
    for (const std::uint64_t one_in : {1U, 2U, 7U, 300U, 100000U}) {
      std::vector<std::uint64_t> words((size + 63) / 64, 0);
      std::vector<std::uint64_t> wanted;
      for (std::uint64_t i = 0; i < size; ++i) {
        if (rng.integer(one_in) != 0) continue;
        words[i / 64] |= 1ULL << (i % 64);
        wanted.push_back(i);
      }
      const Chosen chosen(size, words);
      ASSERT_EQ(chosen.count(), wanted.size());
      for (std::uint64_t rank = 0; rank < wanted.size(); ++rank)
        ASSERT_EQ(chosen[rank], wanted[rank]) << size << " " << one_in;
    }
  }
}

TEST(ChosenTest, DifferentSelectionsHaveDifferentDigests) {
  EXPECT_EQ(Chosen(3, {5}).digest(), Chosen(3, {5}).digest());
  EXPECT_NE(Chosen(3, {5}).digest(), Chosen(3, {6}).digest());
  EXPECT_NE(Chosen(3, {5}).digest(), Chosen(4, {5}).digest());
}

}  // namespace
}  // namespace penstock
